import Client
import Model
import Testing

@testable import patchbay

@Suite struct BatchOperationTests {
    private static func refuse(_ id: String, _ code: Problem.Code = .notFound) -> ClientError {
        .refused(Problem(code, "no tunnel is called \"\(id)\"", next: "patchbay tunnels"))
    }

    @Test func `where one fails the others are done, and it is said`() async {
        var done: [String] = []

        await #expect(throws: Self.refuse("nope")) {
            try await BatchOperation.run(["t1", "nope", "t2"]) { id in
                if id == "nope" { throw Self.refuse(id) }
                done.append(id)
            }
        }

        #expect(done == ["t1", "t2"])
    }

    @Test func `several failures are all said`() async {
        let complaint = await #expect(throws: CLIError.self) {
            try await BatchOperation.run(["a", "b", "c"]) { id in if id != "b" { throw Self.refuse(id) } }
        }

        #expect(complaint?.status == .notFound)
        #expect(complaint?.message == "2 of 3 could not be done")
        #expect(complaint?.candidates == ["no tunnel is called \"a\"", "no tunnel is called \"c\""])
        #expect(complaint?.remedy == "patchbay tunnels")
    }

    @Test func `a broker that is gone ends the series`() async {
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
