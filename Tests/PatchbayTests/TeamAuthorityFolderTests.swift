import FoundationEssentials
import Model
import SystemIO
import TestSupport
import Testing

@testable import patchbay

@Suite(.scratchFolder) struct TeamAuthorityFolderTests {
    private let scratch = ScratchFolder.current

    /// Creates the state folder of a host with these files in `team`.
    private func folder(_ name: String, _ files: [String: String]) throws -> TeamAuthorityFolder {
        let state = scratch.file(name)
        try FileManager.default.createDirectory(atPath: "\(state)/team", withIntermediateDirectories: true)
        for (name, text) in files { try Data(text.utf8).write(to: URL(filePath: "\(state)/team/\(name)")) }
        return TeamAuthorityFolder(state: state)
    }

    private func membership(_ host: String) -> String {
        #"{"schema":1,"content":{"team":"lab","host":"\#(host)","etcd":["https://10.0.0.5:2379"],"addresses":[],"#
            + #""authority":"lab1","authorityAddresses":["10.0.0.7:7284"]}}"#
    }

    private func text(_ path: String) throws -> String { try String(contentsOfFile: path, encoding: .utf8) }

    private func authority() throws -> TeamAuthorityFolder {
        try folder(
            "lab1",
            ["ca.pem": "CA", "ca-key.pem": "KEY", "root.pem": "ROOT", "membership.json": membership("lab1")]
        )
    }

    @Test func `a new machine continues as the host of the backup, with private files`() throws {
        let backup = try authority().backup()
        try FileManager.default.createDirectory(atPath: scratch.file("new"), withIntermediateDirectories: true)

        let outcome = try TeamAuthorityFolder(state: scratch.file("new")).restore(backup)

        #expect(outcome == .restored(host: "lab1", team: "lab"))
        let team = scratch.file("new/team")
        #expect(try text("\(team)/ca-key.pem") == "KEY" && text("\(team)/membership.json") == membership("lab1"))
        #expect(FileStatus(atPath: team)?.mode == 0o700)
        #expect(FileStatus(atPath: "\(team)/ca-key.pem")?.mode == 0o600)
    }

    @Test func `another member gets the authority, and keeps its name, key and servers`() throws {
        let backup = try authority().backup()
        let member = try folder("lab2", ["ca.pem": "CA", "host.pem": "OWN", "membership.json": membership("lab2")])

        #expect(try member.restore(backup) == .takenOver(host: "lab2", from: "lab1"))

        let team = scratch.file("lab2/team")
        #expect(try text("\(team)/ca-key.pem") == "KEY" && text("\(team)/host.pem") == "OWN")
        let content = try #require(try JSON(parsing: try text("\(team)/membership.json"))["content"]?.object)
        #expect(content["authority"]?.string == "lab2" && content["host"]?.string == "lab2")
        #expect(content["authorityAddresses"]?.array == [] && content["etcd"]?.array?.count == 1)
    }

    @Test func `a host of another team keeps its files`() throws {
        let backup = try authority().backup()
        let other = try folder("other", ["ca.pem": "OTHER", "membership.json": membership("lab2")])

        #expect(throws: CLIError.self) { try other.restore(backup) }
        #expect(!FileManager.default.fileExists(atPath: scratch.file("other/team/ca-key.pem")))
    }

    @Test func `a host without the authority has nothing to back up, and other text is no backup`() throws {
        let member = try folder("lab2", ["ca.pem": "CA", "membership.json": membership("lab2")])

        #expect(throws: CLIError.self) { try member.backup() }
        for text in ["", "{}", #"{"membership.json":"{}"}"#] {
            #expect(throws: CLIError.self) { try member.restore(text) }
        }
    }
}
