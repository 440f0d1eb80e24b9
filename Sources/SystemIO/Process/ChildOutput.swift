import CLinux
import Glibc

/// Reads both output streams of a child process until the process ends, on a thread of its own.
///
/// The end of the streams is no sign of the end of the process: a program that it started may keep them open. So
/// the reader also waits for a pidfd (pidfd_open(2)).
struct ChildOutput {
    private let prefix: [UInt8]
    /// The standard output and the standard error; nil after the end of a stream.
    private var streams: [CInt?]
    private var line: [UInt8] = []
    private var errorTail: [UInt8] = []

    private static let chunk = 4 << 10

    /// Takes ownership of the two descriptors.
    init(output: CInt, errors: CInt, prefix: String) {
        streams = [output, errors]
        self.prefix = Array(prefix.utf8)
        for stream in [output, errors] { _ = CLinux_set_nonblocking(stream) }
    }

    /// Returns when the process has ended. Calls `announce` with the rest of each line that begins with the prefix.
    mutating func readUntilEnd(of process: pid_t, announce: (String) -> Void) {
        let ended = CLinux_open_process(process)
        defer { if ended >= 0 { close(ended) } }
        var isRunning = true
        // Without a pidfd (Linux before 5.3) the end of both streams is the end of the process.
        while isRunning, ended >= 0 || streams.contains(where: { $0 != nil }) {
            // poll(2) ignores negative descriptors.
            var waits = [ended, streams[0] ?? -1, streams[1] ?? -1].map {
                pollfd(fd: $0, events: Int16(POLLIN), revents: 0)
            }
            if poll(&waits, nfds_t(waits.count), -1) < 0 { continue }
            isRunning = waits[0].revents == 0
            readAvailable(0) { bytes, reader in reader.appendOutput(bytes, announce) }
            readAvailable(1) { bytes, reader in reader.appendErrors(bytes) }
        }
    }

    /// Closes the streams and returns the end of the process.
    mutating func exit(status: CInt?) -> ChildExit {
        for stream in streams { if let stream { close(stream) } }
        streams = [nil, nil]
        return ChildExit(status: status, errorOutput: String(decoding: errorTail, as: UTF8.self))
    }

    private mutating func readAvailable(_ index: Int, _ append: (ArraySlice<UInt8>, inout ChildOutput) -> Void) {
        var buffer = [UInt8](repeating: 0, count: Self.chunk)
        while let stream = streams[index] {
            let count = read(stream, &buffer, buffer.count)
            if count > 0 {
                append(buffer[..<count], &self)
            } else if count == 0 {
                close(stream)
                streams[index] = nil
            } else if errno != EINTR {
                return
            }
        }
    }

    private mutating func appendOutput(_ bytes: ArraySlice<UInt8>, _ announce: (String) -> Void) {
        for byte in bytes {
            guard byte == UInt8(ascii: "\n") else {
                // A longer line is not an announcement; its rest is dropped.
                if line.count < Self.chunk { line.append(byte) }
                continue
            }
            if line.starts(with: prefix) { announce(String(decoding: line[prefix.count...], as: UTF8.self)) }
            line = []
        }
    }

    private mutating func appendErrors(_ bytes: ArraySlice<UInt8>) {
        errorTail += bytes
        errorTail.removeFirst(max(0, errorTail.count - ChildProcess.errorLimit))
    }
}
