import CLinux
import FoundationEssentials
import Glibc
import Model
import SystemIO

/// An MCP server that this process starts and connects to, as a client does: messages are lines on two pipes.
actor StdioServer {
    /// The reason why a server did not respond.
    enum Failure: Error {
        case notStarted(String)
        /// The server ended. `message` is the end of its standard error.
        case ended(message: String)
        case silent(seconds: Int)
        case error(message: String)
    }

    private nonisolated let process: pid_t
    private let input: CInt
    private let output: CInt
    private let errors: CInt
    private var reader: LineInput
    private var lastID = 0

    /// Starts a program.
    ///
    /// - Throws: `Failure.notStarted`.
    init(_ path: String, _ arguments: [String]) throws(Failure) {
        let (inputRead, inputWrite) = try Self.pipe()
        let (outputRead, outputWrite) = try Self.pipe()
        let (errorRead, errorWrite) = try Self.pipe()
        defer { for end in [inputRead, outputWrite, errorWrite] { close(end) } }
        (input, output, errors) = (inputWrite, outputRead, errorRead)
        reader = LineInput(outputRead)
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        for (end, number) in [(inputRead, STDIN_FILENO), (outputWrite, STDOUT_FILENO), (errorWrite, STDERR_FILENO)] {
            posix_spawn_file_actions_adddup2(&actions, end, number)
        }
        let words = ([path] + arguments).map { strdup($0) } + [nil]
        let variables = ProcessInfo.processInfo.environment.map { strdup("\($0.key)=\($0.value)") } + [nil]
        defer { for word in words + variables { free(word) } }
        var process: pid_t = 0
        let code = posix_spawn(&process, path, &actions, nil, words, variables)
        self.process = process
        guard code == 0 else { throw .notStarted("\(path): \(SocketError.message(for: code))") }
    }

    deinit { for end in [output, errors] { close(end) } }

    private static func pipe() throws(Failure) -> (read: CInt, write: CInt) {
        var ends: [CInt] = [-1, -1]
        guard Glibc.pipe(&ends) == 0 else { throw .notStarted(SocketError.message(for: errno)) }
        // The program must not inherit the ends of this process, or its input would never end.
        for end in ends { _ = CLinux_set_close_on_exec(end) }
        return (ends[0], ends[1])
    }

    /// Sends a request and returns its result. Other messages of the server are ignored.
    ///
    /// - Throws: `Failure`.
    func request(_ method: String, _ params: JSONObject = [:], limit: Int) async throws -> JSON {
        lastID += 1
        let id = JSON.number(JSONNumber(lastID))
        send(["jsonrpc": "2.0", "id": id, "method": .string(method), "params": .object(params)])
        let process = process
        let response: JSON? = try await withTimeout(.seconds(limit), clock: ContinuousClock()) { [self] () -> JSON in
            try await withTaskCancellationHandler {
                try await self.response(to: id)
            } onCancel: {
                // A blocking read ends only with its pipe.
                kill(process, SIGKILL)
            }
        }
        guard let response else { throw Failure.silent(seconds: limit) }
        if let result = response["result"] { return result }
        throw Failure.error(
            message: SanitizedText(response["error"]?["message"]?.string ?? "no result", limit: 500).text
        )
    }

    func notify(_ method: String) { send(["jsonrpc": "2.0", "method": .string(method)]) }

    /// Ends the input, and returns whether the server then ends with status 0. Waits 5 s.
    func end() async -> Bool {
        close(input)
        let process = process
        let status = await BlockingThread.value { () -> CInt? in
            for _ in 0..<500 {
                var status: CInt = 0
                if waitpid(process, &status, WNOHANG) == process { return status }
                usleep(10_000)
            }
            kill(process, SIGKILL)
            waitpid(process, nil, 0)
            return nil
        }
        return status == 0
    }

    private func send(_ message: JSON) { _ = BlockingThread.write(message.bytes + [10], to: input) }

    private func response(to id: JSON) async throws -> JSON {
        while true {
            var reader = reader
            let line = await reader.next()
            self.reader = reader
            guard let line else { throw Failure.ended(message: errorText) }
            if let json = try? JSON(parsing: line), json["method"] == nil, json["id"] == id { return json }
        }
    }

    /// The first line of standard error.
    private var errorText: String {
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        var ready = pollfd(fd: errors, events: Int16(POLLIN), revents: 0)
        guard poll(&ready, 1, 1_000) > 0 else { return "" }
        let count = max(0, read(errors, &buffer, buffer.count))
        let lines = String(decoding: buffer[..<count], as: UTF8.self).split(separator: "\n")
        return SanitizedText(lines.first.map(String.init) ?? "", limit: 500).text
    }
}
