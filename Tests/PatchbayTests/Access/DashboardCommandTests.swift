import ArgumentParser
import Client
import FoundationEssentials
import Model
import Samples
import Testing

@testable import patchbay

@Suite struct DashboardCommandTests {
    private static let code = DashboardCode(
        code: "0123456789abcdefghijkl",
        url: "http://127.0.0.1:7290/#code=0123456789abcdefghijkl",
        expiresAt: Date(timeIntervalSince1970: 0)
    )

    private func lines(_ address: BrokerAddress = .unix(path: "/x"), _ environment: [String: String] = [:]) -> [String]
    {
        Browser(address, environment).lines(for: Self.code)
    }

    @Test func `the first line is the address, and the last one says how long the code works`() {
        let lines = lines()
        #expect(lines.first == Self.code.url && lines.count == 3)
        #expect(lines.last?.contains("once, within 60 seconds") == true)
    }

    @Test func `over ssh, the command that forwards the port is printed`() {
        let environment = ["SSH_CONNECTION": "10.0.0.9 50000 10.0.0.7 22", "USER": "anna", "DISPLAY": ":0"]
        #expect(lines(.unix(path: "/x"), environment)[2].hasSuffix("ssh -L 7290:127.0.0.1:7290 anna@10.0.0.7"))
        #expect(!Browser(.unix(path: "/x"), environment).isHere)
    }

    @Test func `a broker behind ssh has the same command with its own destination`() throws {
        let address = BrokerAddress.ssh(try SSHDestination("ssh://anna@lab:2222"))
        #expect(lines(address)[2].hasSuffix("ssh -L 7290:127.0.0.1:7290 -p 2222 anna@lab"))
        #expect(!Browser(address, ["DISPLAY": ":0", "PATH": "/usr/bin"]).isHere)
    }

    @Test func `with sudo, the code is for root, and no browser is opened`() {
        let environment = ["SUDO_UID": "1000", "DISPLAY": ":0", "PATH": "/usr/bin"]
        #expect(lines(.unix(path: "/x"), environment).contains { $0.contains("sudo") })
        #expect(!Browser(.unix(path: "/x"), environment).isHere)
    }

    @Test func `a browser is opened only where a desktop and the program are`() {
        #expect(!Browser(.unix(path: "/x"), ["PATH": "/usr/bin"]).isHere)
        #expect(!Browser(.unix(path: "/x"), ["DISPLAY": ":0", "PATH": "/nonexistent"]).isHere)
        #expect(!Browser(.unix(path: "/x"), ["DISPLAY": "", "PATH": "/usr/bin"]).isHere)
    }

    @Test func `the commands are parsed`() throws {
        #expect(try Patchbay.parseAsRoot(["dashboard", "--no-open", "--json"]) is DashboardCommand)
        #expect(try Patchbay.parseAsRoot(["devices"]) is DeviceListCommand)
        #expect(try Patchbay.parseAsRoot(["devices", "--watch"]) is DeviceListCommand)
        #expect(try Patchbay.parseAsRoot(["devices", "note", "0000803", "--label", "drawer 3"]) is DeviceNoteCommand)
        #expect(throws: (any Error).self) { try Patchbay.parseAsRoot(["devices", "note", "0000803"]) }
    }

    @Test func `the list of phones has labels and notes only if there are some`() {
        var device = Device(
            udid: "00008030-000D9C2E0C41802E",
            transport: .usb,
            attachedAt: Date(timeIntervalSince1970: 0)
        )
        #expect(!DevicesCommand.table(of: [device]).text(width: nil, isColoured: false).contains("LABEL"))
        device.label = SanitizedText("drawer 3")
        let text = DevicesCommand.table(of: [device]).text(width: nil, isColoured: false)
        #expect(text.contains("LABEL") && text.contains("drawer 3") && !text.contains("NOTE"))
    }
}
