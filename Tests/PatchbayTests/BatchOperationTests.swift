import Client
import Model
import Testing

@testable import patchbay

@Suite struct BatchOperationTests {
    private static func refuse(_ id: String, _ code: Problem.Code = .notFound) -> ClientError {
        .refused(Problem(code, "no tunnel is called \"\(id)\"", hint: "patchbay tunnels"))
    }

    @Test func `the operations after a failed one still run, and the failure is thrown`() async {
        var done: [String] = []

        await #expect(throws: Self.refuse("nope")) {
            try await BatchOperation.run(["t1", "nope", "t2"]) { id in
                if id == "nope" { throw Self.refuse(id) }
                done.append(id)
            }
        }

        #expect(done == ["t1", "t2"])
    }

    @Test func `several failures are combined into one error`() async {
        let error = await #expect(throws: CLIError.self) {
            try await BatchOperation.run(["a", "b", "c"]) { id in if id != "b" { throw Self.refuse(id) } }
        }

        #expect(error?.status == .notFound)
        #expect(error?.message == "2 of 3 operations failed")
        #expect(error?.candidates == ["no tunnel is called \"a\"", "no tunnel is called \"c\""])
        #expect(error?.hint == "patchbay tunnels")
    }

    @Test func `a lost broker ends the batch`() async {
        var tried = 0

        await #expect(throws: ClientError.brokerNotRunning(path: "/x")) {
            try await BatchOperation.run(["a", "b"]) { _ in
                tried += 1
                throw ClientError.brokerNotRunning(path: "/x")
            }
        }

        #expect(tried == 1)
    }
}
