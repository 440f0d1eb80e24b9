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

    @Test func `an unknown ID in another case has the known one as its hint`() async {
        let known = ["t1", "0a1b2c3d"]
        for (id, hint) in [("T1", "patchbay tunnels rm t1"), ("0A1b2C3D", "patchbay tunnels rm 0a1b2c3d")] {
            let error = await #expect(throws: ClientError.self) {
                try await BatchOperation.run([id]) { id in
                    throw Self.refuse(id)
                } suggestion: { id in
                    CommandSuggestion.respelled(id, for: "patchbay tunnels rm", among: known)
                }
            }
            #expect(error?.hint == hint)
        }
        #expect(CommandSuggestion.respelled("t1", for: "patchbay revoke", among: known) == nil)
        #expect(CommandSuggestion.respelled("T2", for: "patchbay revoke", among: known) == nil)
        #expect(
            CommandSuggestion.respelled("bquqwjby", for: "patchbay revoke", among: ["bQuqWJby"])
                == "patchbay revoke bQuqWJby"
        )
        #expect(CommandSuggestion.respelled("ab", for: "patchbay revoke", among: ["AB", "aB"]) == nil)
    }

    @Test func `the beginning of an ID is enough if it has 4 characters and one ID begins with it`() {
        let known = ["bQuqWJby", "bQuqXXXX", "E0vvg3IS"]
        #expect(RevokeCommand.whole("E0vv", among: known) == "E0vvg3IS")
        #expect(RevokeCommand.whole("E0v", among: known) == nil && RevokeCommand.whole("bQuq", among: known) == nil)
        #expect(RevokeCommand.whole("bQuqW", among: known) == "bQuqWJby")
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
