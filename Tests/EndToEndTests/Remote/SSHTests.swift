import FoundationEssentials
import Glibc
import TestSupport
import Testing

/// `--broker ssh://host` with a real OpenSSH server.
@Suite(.needs(.root, .namespaces, .python, .ssh), .scratchFolder) struct SSHTests {
    private let scratch = ScratchFolder.current

    @Test func `commands, events and calls work through one login each`() async throws {
        let machine = try await SSHMachine(in: scratch)
        try await machine.startBroker()
        let port = try await machine.startApp()
        let watch = try await machine.start("ssh://box", "watch")
        try await watch.waitForLine("no endpoints; waiting")

        _ = try await machine.ask("ssh://root@box", "add", "Shop", "127.0.0.1:\(port)", "--kind", "appreveal")
        try await watch.waitForLine("+  shop")
        #expect(try await machine.ask("ssh://box:\(SSHMachine.port)", "list", "--quiet") == ["shop"])
        #expect(try await machine.ask("ssh://box", "tools", "shop").contains { $0.hasPrefix("tap_element") })
        let answer = try await machine.ask("ssh://box", "call", "shop", "tap_element", "element_id=5")
        #expect(answer.joined().contains(#""tapped": "5""#))
        #expect(machine.logins == 5)
        let status = try await machine.ask("ssh://box/run/patchbay/patchbay.sock", "status")
        #expect(
            status.contains { $0.hasPrefix("broker") && $0.hasSuffix("at ssh://box/run/patchbay/patchbay.sock") }
        )
    }

    @Test func `the broker of a user is found, and knows the user of ssh`() async throws {
        let machine = try await SSHMachine(in: scratch)
        try await machine.startBroker(as: SSHMachine.annie, socket: "/run/user/4711/patchbay/patchbay.sock")

        _ = try await machine.ask("ssh://annie@box", "pair", "--detach")

        let audit = try await machine.ask("ssh://annie@box", "audit").joined(separator: "\n")
        #expect(audit.contains("4711"), "\(audit)")
    }

    @Test func `mcp starts ssh again when ssh was killed`() async throws {
        let machine = try await SSHMachine(in: scratch)
        try await machine.startBroker()
        let agent = try await machine.start("ssh://box", "mcp", input: .pipe)
        try agent.write(#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","#)
        try agent.write(#""capabilities":{},"clientInfo":{"name":"test","version":"1"}}}"# + "\n")
        try await agent.waitForLine(#""id":1,"#)

        for (number, id) in try await machine.children(of: agent).enumerated() {
            kill(id, SIGKILL)
            try agent.write(#"{"jsonrpc":"2.0","id":\#(number + 2),"method":"tools/list"}"# + "\n")
            try await agent.waitForLine(#""id":\#(number + 2),"#)
        }

        #expect(machine.logins == 2)
        agent.closeInput()
        #expect(try await agent.exitStatus() == .exited(0), "\(agent.log)")
    }

    @Test func `watch reconnects when ssh was killed, and leaves nothing when it is killed itself`() async throws {
        let machine = try await SSHMachine(in: scratch)
        try await machine.startBroker()
        let watch = try await machine.start("ssh://box", "watch")
        try await watch.waitForLine("no endpoints; waiting")
        let first = try await machine.children(of: watch)
        #expect(first.count == 2)
        for id in first { kill(id, SIGKILL) }
        try await watch.waitForLine("reconnected to the broker")
        let second = try await machine.children(of: watch)

        kill(watch.processID, SIGKILL)

        #expect(try await watch.exitStatus() == .signalled(SIGKILL))
        for id in second { try await eventually("ssh ends with patchbay") { kill(id, 0) != 0 } }
        let names = try FileManager.default.contentsOfDirectory(atPath: "/tmp")
        #expect(!names.contains { $0.hasPrefix("patchbay-ssh-\(watch.processID)-") })
    }

    @Test func `a shared connection of the user is used, and stays as it was`() async throws {
        let machine = try await SSHMachine(in: scratch)
        try await machine.startBroker()
        let control = ["-o", "RemoteCommand=none", "-o", "ClearAllForwardings=yes"]
        let master = try await Program(
            "nsenter",
            ["--target", "\(machine.server.processID)", "--net", "--mount", "--", "ssh", "-N"] + control + ["shared"],
            in: scratch
        )
        try await eventually("the user's ssh is connected") { machine.logins == 1 }

        #expect(try await machine.ask("ssh://shared", "list").first?.hasPrefix("No endpoints") == true)

        #expect(machine.logins == 1 && master.isRunning)
    }

    @Test func `each failure says what failed and what to do`() async throws {
        let machine = try await SSHMachine(in: scratch)
        func failure(_ broker: String, _ status: CInt, _ texts: String...) async throws {
            let list = try await machine.start(broker, "list")
            #expect(try await list.exitStatus() == .exited(status), "\(broker): \(list.log)")
            for text in texts + ["try: "] { #expect(list.log.contains(text), "\(broker): \(list.log)") }
        }

        try await failure("ssh://nowhere.invalid", 69, "Could not resolve hostname nowhere.invalid")
        try await failure("ssh://keyless", 69, "ssh could not connect to keyless", "Permission denied (publickey)")
        try await failure("ssh://-oProxyCommand=x", 64, "is not an ssh address")
        try await failure("ssh://box", 69, "no broker runs on box", "patchbayd")
        let broker = try await machine.startBroker()
        try await failure("ssh://annie@box", 77, "annie@box has no permission", "/run/patchbay/patchbay.sock")
        broker.kill()
        _ = try await broker.exitStatus()
        try await failure("ssh://box", 69, "no broker listens at /run/patchbay/patchbay.sock on box")
        try await failure("ssh://box/run/x.sock", 69, "no broker listens at /run/x.sock on box")
        try await machine.run(
            "sh",
            "-c",
            "ssh-keygen -q -t ed25519 -N '' -f /run/ssh/other && "
                + "echo \"[127.0.0.1]:2222 $(cut -d' ' -f1,2 /run/ssh/other.pub)\" > /run/home/root/.ssh/known_hosts"
        )
        try await failure("ssh://box", 69, "REMOTE HOST IDENTIFICATION HAS CHANGED", "Host key verification failed")
    }
}
