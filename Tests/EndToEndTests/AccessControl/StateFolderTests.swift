import FoundationEssentials
import Glibc
import TestSupport
import Testing

/// The state folder: a full disk, unsafe permissions and damaged files.
@Suite(.scratchFolder) struct StateFolderTests {
    private let scratch = ScratchFolder.current
    private static let script = String(#filePath.dropLast("StateFolderTests.swift".count)) + "full_disk.py"

    @Test(.needs(.root, .namespaces, .python))
    func `with a full disk no acknowledged change is lost, even after a kill, and the broker recovers`()
        async throws
    {
        let state = try scratch.makeFolder("state")
        try await Program.run("mount", ["-t", "tmpfs", "-o", "size=1m,mode=700", "none", state], in: scratch)
        scratch.atEnd { umount2(state, CInt(MNT_DETACH)) }
        let port = try FreePorts.take()[0]
        let broker = try await RunningBroker(in: scratch, configuration: "[api]\nport = \(port)\n")
        let client = try await Program(
            "python3",
            [Self.script, broker.socket, "\(port)", state],
            in: scratch,
            input: .pipe
        )
        try await client.waitForLine("ready")

        try client.write("\n")
        let full = try await client.waitForLine("full:")
        #expect(full == "full: invite 503 redeem 503 revoke 503 live in revoked out", "\(client.log)")
        let refusal = try #require(client.output.dropFirst().first)
        #expect(refusal.hasPrefix("unavailable: \(state)/"), "\(refusal)")
        #expect(refusal.hasSuffix("try again | make room on the disk, and try again"), "\(refusal)")
        broker.daemon.kill()
        _ = try await broker.daemon.exitStatus()
        try await broker.restart()
        try client.write("\n")
        try await client.waitForLine("again: live in redeem 503")
        try client.write("\n")
        try await client.waitForLine(
            "room: redeem 201 the same again True revoke 200 live in revoked out redeemed in audit None"
        )
        broker.daemon.kill()
        _ = try await broker.daemon.exitStatus()
        try await broker.restart()
        try client.write("\n")
        try await client.waitForLine("later: live in revoked out redeemed in lost 0 audit None")
    }

    /// Damage to the folder of a stopped broker and the resulting error message.
    enum Damage: CaseIterable {
        case openFolder, openKey, openDatabase, openLog, shortKey, otherKey, noKey, linkedDatabase

        func run(in state: String) throws -> String {
            let (key, database, log) = ("\(state)/access.key", "\(state)/access.sqlite", "\(state)/audit.jsonl")
            switch self {
            case .openFolder:
                chmod(state, 0o777)
                return "\(state) can be written by others (mode 0777); chmod 700 it"
            case .openKey, .openDatabase, .openLog:
                let path = self == .openKey ? key : self == .openDatabase ? database : log
                chmod(path, 0o644)
                return "\(path) can be opened by others (mode 0644); chmod 600 it"
            case .shortKey:
                truncate(key, 31)
                return "\(key) is not the key that access.sqlite was written with; put that one back"
            case .otherKey:
                try overwrite(key, Data(repeating: 7, count: 32))
                return "the sealing key is not the key that access.sqlite was written with; put that one back"
            case .noKey:
                unlink(key)
                return "\(key) is not there, and access.sqlite was written with it; put the key back"
            case .linkedDatabase:
                rename(database, "\(state)/elsewhere")
                symlink("\(state)/elsewhere", database)
                return "\(database) is not a regular file with one link; find out which user created it"
            }
        }

        private func overwrite(_ path: String, _ bytes: Data) throws {
            let file = open(path, O_WRONLY | O_TRUNC)
            defer { close(file) }
            guard bytes.withUnsafeBytes({ write(file, $0.baseAddress, $0.count) }) == bytes.count else {
                throw TestSupportError(call: "write")
            }
        }
    }

    @Test(.needs(.python), arguments: Damage.allCases)
    func `an unsafe state folder stops the start with a remedy and is left unchanged`(damage: Damage) async throws {
        let broker = try await RunningBroker(in: scratch, configuration: "[api]\ntcp = false\n")
        _ = try await broker.ask("pair", "--detach")
        broker.daemon.terminate()
        _ = try await broker.daemon.exitStatus()
        let state = scratch.file("state")
        let wanted = try damage.run(in: state)
        let before = try contents(of: state)

        let start = ContinuousClock.now
        let daemon = try await Program(
            Executable.built("patchbayd"),
            ["--socket", broker.socket, "--state-directory", state],
            in: scratch
        )

        #expect(try await daemon.exitStatus() == .exited(1))
        #expect(ContinuousClock.now - start < .seconds(5))
        for await _ in daemon.transcript.elements() {}
        #expect(daemon.log.contains("error: the access state cannot be read: \(wanted)"), "\(daemon.log)")
        #expect(try contents(of: state) == before)
    }

    private func contents(of folder: String) throws -> [String: Data] {
        var all: [String: Data] = [:]
        for name in try FileManager.default.contentsOfDirectory(atPath: folder) where name != "lock" {
            all[name] = try Data(contentsOf: URL(filePath: "\(folder)/\(name)"))
        }
        return all
    }
}
