import ArgumentParser
import Model
import Testing

@testable import patchbay

@Suite struct ReverseCommandTests {
    @Test(arguments: [("tcp:8081", 8081), ("8081", 8081), ("tcp:1", 1), ("65535", 65535)])
    func `a port is written as adb does, or alone`(text: String, port: UInt16) throws {
        #expect(try ReverseCommand.port(text) == port)
    }

    @Test(arguments: [
        "", "tcp:", "tcp:0", "0", "65536", "-1", "+1", "8081:9000", "tcp:8081:192.0.2.7", "localabstract:x", "metro",
        "８０８１",
        "udp:8081", "tcp:tcp:1",
    ])
    func `another word is refused with an example`(text: String) {
        let error = #expect(throws: CLIError.self) { try ReverseCommand.port(text) }
        #expect(error?.status == .usage && error?.hint == "patchbay reverse tcp:8081 tcp:8081")
        #expect(error?.message.contains("1 to 65535") == true)
    }

    @Test func `two ports open, and --list and --remove take none`() throws {
        for words in [
            ["tcp:1", "tcp:2"], ["1", "2", "-d", "Pixel"], ["--list"], ["--list", "--json"], ["--remove", "1"],
        ] {
            #expect(throws: Never.self) { try Patchbay.parseAsRoot(["reverse"] + words) }
        }
        for words in [
            [], ["tcp:1"], ["tcp:1", "tcp:2", "tcp:3"], ["tcp:1", "--list"], ["tcp:1", "tcp:2", "--remove", "tcp:1"],
            ["--list", "--remove", "tcp:1"], ["--remove"],
        ] {
            #expect(throws: (any Error).self) { try Patchbay.parseAsRoot(["reverse"] + words) }
        }
        let error = #expect(throws: (any Error).self) { try Patchbay.parseAsRoot(["reverse", "tcp:1"]) }
        #expect(Patchbay.message(for: try #require(error)).contains("patchbay reverse tcp:8081 tcp:8081"))
    }

    @Test(arguments: [
        (Tunnel.State.active, "active"), (.waiting(reason: "no phone"), "waiting: no phone"),
        (.failed(reason: "in use"), "failed: in use"),
    ])
    func `a line has the phone, its port, the port of this machine, and the state`(state: Tunnel.State, shown: String)
        throws
    {
        let udid = try #require(UDID(androidSerial: "R58M12ABCDE"))
        let tunnel = ReverseTunnel(udid: udid, phonePort: 8081, localPort: 3000, state: state)
        #expect(ReverseCommand.line(of: tunnel) == "android-R58M12ABCDE tcp:8081 tcp:3000 \(shown)")
    }
}
