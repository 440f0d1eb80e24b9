import Model
import Testing

@Suite struct BrokerSocketPathTests {
    @Test func `an explicit path overrides the variable and the defaults`() {
        let path = BrokerSocketPath.find(
            explicit: "/a",
            environment: ["PATCHBAY_SOCKET": "/b"],
            userID: 1000,
            exists: { _ in true }
        )

        #expect(path == "/a")
    }

    @Test func `the variable overrides the defaults, and an empty variable counts as unset`() {
        let set = BrokerSocketPath.find(environment: ["PATCHBAY_SOCKET": "/b"], userID: 1000, exists: { _ in true })
        let empty = BrokerSocketPath.find(environment: ["PATCHBAY_SOCKET": ""], userID: 1000, exists: { _ in true })

        #expect(set == "/b")
        #expect(empty == BrokerSocketPath.system)
    }

    @Test func `without a system-wide broker the path is the user's own`() {
        let none: (String) -> Bool = { _ in false }

        #expect(
            BrokerSocketPath.find(environment: ["XDG_RUNTIME_DIR": "/run/user/7"], userID: 1000, exists: none)
                == "/run/user/7/patchbay/patchbay.sock"
        )
        #expect(
            BrokerSocketPath.find(environment: [:], userID: 1000, exists: none)
                == "/run/user/1000/patchbay/patchbay.sock"
        )
        #expect(
            BrokerSocketPath.find(environment: ["XDG_RUNTIME_DIR": "/run/user/0"], userID: 0, exists: none)
                == BrokerSocketPath.system
        )
    }

    @Test func `an installed service that is stopped is named by its own socket, unless the user's own broker runs`() {
        let own = "/run/user/7/patchbay/patchbay.sock"
        func path(_ files: Set<String>) -> String {
            BrokerSocketPath.find(
                environment: ["XDG_RUNTIME_DIR": "/run/user/7"],
                userID: 1000,
                exists: { files.contains($0) }
            )
        }

        #expect(path(["/lib/systemd/system/patchbayd.service"]) == BrokerSocketPath.system)
        #expect(path(["/lib/systemd/system/patchbayd.service", own]) == own)
        #expect(path([]) == own)
    }

    @Test func `the broker listens on the path that its clients use`() {
        let environment = ["XDG_RUNTIME_DIR": "/run/user/1000"]

        #expect(
            BrokerSocketPath.listen(environment: environment, userID: 1000)
                == BrokerSocketPath.find(environment: environment, userID: 1000, exists: { _ in false })
        )
        #expect(
            BrokerSocketPath.listen(environment: ["RUNTIME_DIRECTORY": "/run/patchbay"], userID: 990)
                == BrokerSocketPath.system
        )
    }
}
