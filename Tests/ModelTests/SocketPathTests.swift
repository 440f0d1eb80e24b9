import Model
import Testing

@Suite struct SocketPathTests {
    @Test func `what is said goes before everything else`() {
        let path = SocketPath.find(
            explicit: "/a",
            environment: ["PATCHBAY_SOCKET": "/b"],
            userID: 1000,
            exists: { _ in true }
        )

        #expect(path == "/a")
    }

    @Test func `the variable goes before the places, and an empty one counts as unset`() {
        let set = SocketPath.find(environment: ["PATCHBAY_SOCKET": "/b"], userID: 1000, exists: { _ in true })
        let empty = SocketPath.find(environment: ["PATCHBAY_SOCKET": ""], userID: 1000, exists: { _ in true })

        #expect(set == "/b")
        #expect(empty == SocketPath.system)
    }

    @Test func `without a broker for the machine it is the user's own`() {
        let none: (String) -> Bool = { _ in false }

        #expect(
            SocketPath.find(environment: ["XDG_RUNTIME_DIR": "/run/user/7"], userID: 1000, exists: none)
                == "/run/user/7/patchbay/patchbay.sock"
        )
        #expect(
            SocketPath.find(environment: [:], userID: 1000, exists: none) == "/run/user/1000/patchbay/patchbay.sock"
        )
        #expect(
            SocketPath.find(environment: ["XDG_RUNTIME_DIR": "/run/user/0"], userID: 0, exists: none)
                == SocketPath.system
        )
    }

    @Test func `the daemon listens where its client looks`() {
        let environment = ["XDG_RUNTIME_DIR": "/run/user/1000"]

        #expect(
            SocketPath.listen(environment: environment, userID: 1000)
                == SocketPath.find(environment: environment, userID: 1000, exists: { _ in false })
        )
        #expect(
            SocketPath.listen(environment: ["RUNTIME_DIRECTORY": "/run/patchbay"], userID: 990) == SocketPath.system
        )
    }
}
