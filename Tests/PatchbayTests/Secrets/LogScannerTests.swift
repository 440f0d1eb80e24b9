import Glibc
import Synchronization
import Testing

@testable import patchbay

@Suite struct LogScannerTests {
    private func pipes() throws -> (read: CInt, write: CInt) {
        var ends: [CInt] = [0, 0]
        try #require(pipe(&ends) == 0)
        return (ends[0], ends[1])
    }

    @Test func `partial lines are copied immediately, and the end of the input ends the scan`() async throws {
        let (input, result) = (try pipes(), try pipes())
        let found = Mutex<[SessionURL]>([])
        async let ending = LogScanner(input: input.read, output: result.write).run { url in
            found.withLock { $0.append(url) }
        }

        for piece in [
            "half", " a line", "\u{0}\n[AppReveal] Session URL: http://127.0.0.1:80/?appreveal_session_token=",
        ] {
            write(input.write, piece, piece.utf8.count)
            #expect(await Self.next(result.read) == piece)
        }
        let token = String(repeating: "ab12", count: 16)
        write(input.write, token, 64)
        #expect(await Self.next(result.read) == "[redacted]")
        close(input.write)

        #expect(await ending == .finished(redactions: 1))
        #expect(found.withLock { $0 } == [SessionURL(origin: .loopback(80), token: Secret(token))])
    }

    @Test func `a closed output ends the scan`() async throws {
        signal(SIGPIPE, SIG_IGN)
        let (input, result) = (try pipes(), try pipes())
        close(result.read)
        write(input.write, "x", 1)

        #expect(await LogScanner(input: input.read, output: result.write).run { _ in } == .outputClosed)
    }

    @Test func `a read error is reported with its errno`() async throws {
        let folder = open("/", O_RDONLY)

        #expect(await LogScanner(input: folder, output: folder).run { _ in } == .unreadable(errno: EISDIR))
    }

    private static func next(_ descriptor: CInt) async -> String {
        await BlockingThread.value {
            var buffer = [UInt8](repeating: 0, count: 1_000)
            let count = read(descriptor, &buffer, 1_000)
            return String(decoding: buffer.prefix(max(0, count)), as: UTF8.self)
        }
    }
}
