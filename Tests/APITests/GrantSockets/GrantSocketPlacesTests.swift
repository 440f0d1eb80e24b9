import FoundationEssentials
import Glibc
import Model
import SystemIO
import TestSupport
import Testing

@testable import API

@Suite(.scratchFolder) struct GrantSocketPlacesTests {
    private let scratch = ScratchFolder.current
    private static let owners = OwnerPolicy(user: geteuid(), group: nil)
    private static let other = geteuid() + 1

    @Test func `another user gets no socket in a folder of its own, and no folder is made`() async throws {
        let places = GrantSocketPlaces(environment: [:], owners: Self.owners)
        let path = scratch.file("agent/patchbay.sock")
        let refusal = #expect(throws: Problem.self) { _ = try places.listen(at: path, for: Self.other) }

        #expect(refusal?.detail.contains("to user \(Self.other)") == true)
        #expect(refusal?.hint?.isEmpty == false)
        #expect(!FileManager.default.fileExists(atPath: scratch.file("agent")))
        try places.listen(at: path, for: geteuid()).close()
    }

    @Test func `the command that makes a missing folder is safe to paste`() async throws {
        let places = GrantSocketPlaces(environment: [:], owners: Self.owners)
        let folder = scratch.file("nowhere/a b;id")
        let refusal = #expect(throws: Problem.self) { _ = try places.listen(at: "\(folder)/x.sock", for: geteuid()) }

        #expect(refusal?.hint == "create the folder first: mkdir -p '\(folder)'")
    }

    @Test(.needs(.root)) func `a broker of root makes no socket for a client whose user is unknown`() async throws {
        let places = GrantSocketPlaces(environment: [:], owners: Self.owners)
        #expect(throws: Problem.self) { _ = try places.listen(at: scratch.file("a.sock"), for: nil) }
        #expect(!FileManager.default.fileExists(atPath: scratch.file("a.sock")))
    }

    @Test func `every owner gets a socket in the folder of owners, and no path leaves it`() async throws {
        let (tunnels, grants) = (try scratch.makeFolder("tunnels"), try scratch.makeFolder("grants"))
        let places = GrantSocketPlaces(environment: ["RUNTIME_DIRECTORY": "\(grants):\(tunnels)"], owners: Self.owners)
        try places.listen(at: "\(grants)/agent/patchbay.sock", for: Self.other).close()
        for path in ["\(grants)/../a.sock", "\(tunnels)/a.sock"] {
            #expect(throws: Problem.self) { _ = try places.listen(at: path, for: Self.other) }
        }
    }

    @Test func `the daemon opens the folder of tunnels, and not the folder of grants`() async throws {
        let folders = [try scratch.makeFolder("tunnels"), try scratch.makeFolder("grants")]
        for folder in folders { chmod(folder, 0o750) }
        func modes() async throws -> [String] { try await Program.run("stat", ["-c", "%a"] + folders, in: scratch) }
        ServiceFolders.openTunnels(environment: ["RUNTIME_DIRECTORY": folders[0]])
        #expect(try await modes() == ["750", "750"])
        // systemd sorts the folders.
        let sorted = folders.sorted().joined(separator: ":")
        ServiceFolders.openTunnels(environment: ["RUNTIME_DIRECTORY": sorted])
        #expect(try await modes() == ["755", "750"])
    }
}
