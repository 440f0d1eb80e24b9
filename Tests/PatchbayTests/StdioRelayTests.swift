import Glibc
import Testing

@testable import patchbay

@Suite struct StdioRelayTests {
    private func pair() throws -> (CInt, CInt) {
        var ends: [CInt] = [0, 0]
        try #require(socketpair(AF_UNIX, CInt(SOCK_STREAM.rawValue), 0, &ends) == 0)
        return (ends[0], ends[1])
    }

    private func pipes() throws -> (CInt, CInt) {
        var ends: [CInt] = [0, 0]
        try #require(pipe(&ends) == 0)
        return (ends[0], ends[1])
    }

    @Test func `the end of the input does not end the output`() async throws {
        let (input, feed) = try pipes()
        let (result, output) = try pipes()
        let (socket, server) = try pair()
        write(feed, "ask", 3)
        close(feed)

        async let ending = StdioRelay(input: input, output: output).run(over: socket)
        // The server responds only after the end of the request.
        let question = try await Self.all(of: server)
        write(server, "answer", 6)
        close(server)

        #expect(question == "ask")
        #expect(await ending == .finished)
        close(output)
        #expect(try await Self.all(of: result) == "answer")
    }

    @Test func `a closed output is distinguished from a closed socket`() async throws {
        signal(SIGPIPE, SIG_IGN)
        let (input, feed) = try pipes()
        let (result, output) = try pipes()
        let (socket, server) = try pair()
        close(result)
        write(server, "answer", 6)

        let ending = await StdioRelay(input: input, output: output).run(over: socket)

        #expect(ending == .outputClosed)
        close(feed)
        close(server)
    }

    /// Reads until end of file on a dedicated thread.
    private static func all(of descriptor: CInt) async throws -> String {
        await withCheckedContinuation { continuation in
            var thread = pthread_t()
            final class Box: Sendable {
                let descriptor: CInt
                let continuation: CheckedContinuation<String, Never>
                init(_ descriptor: CInt, _ continuation: CheckedContinuation<String, Never>) {
                    self.descriptor = descriptor
                    self.continuation = continuation
                }
            }
            let box = Unmanaged.passRetained(Box(descriptor, continuation))
            pthread_create(
                &thread,
                nil,
                { argument in
                    guard let argument else { return nil }
                    let box = Unmanaged<Box>.fromOpaque(argument).takeRetainedValue()
                    var text: [UInt8] = []
                    var buffer = [UInt8](repeating: 0, count: 100)
                    while case let count = read(box.descriptor, &buffer, 100), count > 0 { text += buffer[..<count] }
                    box.continuation.resume(returning: String(decoding: text, as: UTF8.self))
                    return nil
                },
                box.toOpaque()
            )
        }
    }
}
