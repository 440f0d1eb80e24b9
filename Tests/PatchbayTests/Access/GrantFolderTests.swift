import FoundationEssentials
import Glibc
import Model
import Rig
import Testing

@testable import patchbay

@Suite struct GrantFolderTests {
    private let grant = Grant(
        id: "0a1b2c3d",
        name: Untrusted("agent"),
        permissions: Permissions([.registryRead], on: .all),
        binding: .bearer,
        parent: nil,
        invite: "9z8y7x6w",
        created: Samples.date,
        expires: Samples.date.addingTimeInterval(28_800),
        lastUsed: Samples.date,
        idleSeconds: 7_200,
        end: nil
    )

    private func mode(_ path: String) -> mode_t {
        var facts = stat()
        return lstat(path, &facts) == 0 ? facts.st_mode & 0o7777 : 0
    }

    @Test func `a grant is kept for its user alone, and can be read back`() async throws {
        try await withScratchFolder { scratch in
            let folder = try GrantFolder(environment: ["XDG_STATE_HOME": scratch.file("state"), "HOME": "/nowhere"])
            umask(0)
            defer { umask(0o022) }
            try folder.prepare()

            let file = try folder.keep(GrantFolder.Entry(broker: "127.0.0.1:7282", grant: grant, token: "pbg_x"))

            #expect(file == scratch.file("state/patchbay/grants/0a1b2c3d.json"))
            #expect(mode(file) == 0o600)
            #expect(mode(folder.path) == 0o700)
            let data = try Data(contentsOf: URL(filePath: file))
            #expect(try Wire.decoder().decode(GrantFolder.Entry.self, from: data).token == "pbg_x")
            #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["0a1b2c3d.json"])
        }
    }

    @Test func `a folder that others may open, or that is a link, is refused before anything is spent`() async throws {
        try await withScratchFolder { scratch in
            let folder = try GrantFolder(environment: ["XDG_STATE_HOME": scratch.path])
            try folder.prepare()
            chmod(folder.path, 0o755)
            #expect(throws: Complaint.self) { try folder.prepare() }

            try FileManager.default.removeItem(atPath: folder.path)
            try scratch.makeFolder("elsewhere")
            symlink(scratch.file("elsewhere"), folder.path)
            let complaint = #expect(throws: Complaint.self) { try folder.prepare() }

            #expect(complaint?.status == .configuration)
        }
    }

    @Test func `without a place there is a way to go on`() {
        let complaint = #expect(throws: Complaint.self) { try GrantFolder(environment: ["HOME": "relative"]) }

        #expect(complaint?.remedy == "patchbay join --print -")
    }
}
