import Client
import Testing

@Suite struct SSHDestinationTests {
    @Test(
        arguments: [
            ("ssh://box", nil, "box", nil, nil), ("ssh://box/", nil, "box", nil, nil),
            ("ssh://anna@box.example:2222", "anna", "box.example", 2_222, nil),
            (
                "ssh://anna@corp@10.0.0.7/run/user/1000/patchbay/patchbay.sock", "anna@corp", "10.0.0.7", nil,
                "/run/user/1000/patchbay/patchbay.sock"
            ),
            ("ssh://[fe80::1%eth0]:22", nil, "fe80::1%eth0", 22, nil), ("ssh://a_b-c", nil, "a_b-c", nil, nil),
        ] as [(String, String?, String, UInt16?, String?)]
    )
    func `an ssh address has a user, a host, a port and a socket`(
        text: String,
        user: String?,
        host: String,
        port: UInt16?,
        socket: String?
    ) throws {
        let destination = try SSHDestination(text)

        #expect(destination.user == user && destination.host == host)
        #expect(destination.port == port && destination.socket == socket)
        #expect(destination.description == (text.hasSuffix("box/") ? "ssh://box" : text))
    }

    @Test(arguments: [
        "ssh://-oProxyCommand=touch", "ssh://-oProxyCommand=touch@box", "ssh://anna@-G", "ssh://", "ssh:///run/x.sock",
        "ssh://anna@", "ssh://@box", "ssh://anna:secret@box", "ssh://box:0", "ssh://box:65536", "ssh://box:+22",
        "ssh://box:", "ssh://box:22:22", "ssh://[::1", "ssh://[::1]22", "ssh://[-G]", "ssh://::1", "ssh://b;x",
        "ssh://b x",
        "ssh://b$(x)", "ssh://b`x`", "ssh://bücher", "ssh://box/run/a b", "ssh://box/run/'x'", "ssh://box/a:b",
        "ssh://box/%h", "ssh://box/\(String(repeating: "a", count: 107))", "ssh://box?x=1", "ssh://box\n", "box",
    ])
    func `text that could be an option or a command is no ssh address`(text: String) {
        let error = #expect(throws: ClientError.self) { try SSHDestination(text) }
        guard case .invalidDestination = error else {
            Issue.record("\(text): \(String(describing: error))")
            return
        }
    }

    @Test func `the messages name the user, the host and the command that shows the problem`() throws {
        let destination = try SSHDestination("ssh://anna@box:2222/run/x.sock")
        let failed = ClientError.sshFailed(to: destination, reason: "Permission denied (publickey).", isLost: false)

        #expect(failed.description == "ssh could not connect to anna@box: Permission denied (publickey).")
        #expect(failed.hint == "make `ssh -p 2222 anna@box` work, then try again")
        #expect(
            ClientError.noRemoteBroker(destination, path: "/run/x.sock").description
                == "no broker listens at /run/x.sock on anna@box"
        )
    }
}
