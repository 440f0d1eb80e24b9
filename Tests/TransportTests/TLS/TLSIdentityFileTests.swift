import FoundationEssentials
import Glibc
import Model
import TestSupport
import Testing
import Transport

@Suite struct TLSIdentityFileTests {
    private static func withFile(_ body: (TLSIdentityFile, ScratchFolder) throws -> Void) async throws {
        try await withScratchFolder { try body(TLSIdentityFile($0.file("remote.pem")), $0) }
    }

    @Test func `the first start creates a key, and later starts use the same key`() async throws {
        try await Self.withFile { file, _ in
            #expect(try file.load() == nil)
            let pin = try file.loadOrCreate().pin

            #expect(try file.loadOrCreate().pin == pin)
            #expect(try file.load()?.pin == pin)
            #expect(try TLSIdentity().pin != pin)
        }
    }

    @Test func `only the user can open the file`() async throws {
        try await Self.withFile { file, _ in
            _ = try file.loadOrCreate()
            var status = stat()

            #expect(stat(file.path, &status) == 0)
            #expect(status.st_mode & 0o7777 == 0o600)
        }
    }

    @Test(arguments: [0o640, 0o604, 0o622] as [mode_t])
    func `a file that others can open is refused, with the remedy`(mode: mode_t) async throws {
        try await Self.withFile { file, _ in
            _ = try file.loadOrCreate()
            chmod(file.path, mode)

            let error = #expect(throws: TLSError.self) { try file.loadOrCreate() }
            #expect(error?.description.contains(file.path) == true)
            #expect(error?.description.contains("chmod 600") == true)
        }
    }

    @Test func `a link to a key file is refused`() async throws {
        try await Self.withFile { file, folder in
            _ = try file.loadOrCreate()
            let link = TLSIdentityFile(folder.file("link.pem"))
            #expect(symlink(file.path, link.path) == 0)

            #expect(throws: TLSError.exposed(path: link.path, what: "is a link; put the file itself there")) {
                try link.loadOrCreate()
            }
        }
    }

    @Test func `a damaged file is refused and not replaced`() async throws {
        try await Self.withFile { file, folder in
            _ = try file.loadOrCreate()
            let whole = try String(contentsOfFile: file.path, encoding: .utf8)
            let other = TLSIdentityFile(folder.file("other.pem"))
            _ = try other.loadOrCreate()
            let certificate = try #require(
                String(contentsOfFile: other.path, encoding: .utf8).firstRange(of: "-----BEGIN CERTIFICATE")
            )
            let key = try #require(whole.firstRange(of: "-----BEGIN CERTIFICATE"))
            let foreign = try String(contentsOfFile: other.path, encoding: .utf8)[certificate.lowerBound...]

            for text in ["", String(whole.dropLast(100)), String(whole[..<key.lowerBound]) + foreign] {
                try folder.write(text, to: "remote.pem")
                chmod(file.path, 0o600)
                let error = #expect(throws: TLSError.self) { try file.loadOrCreate() }
                guard case .damaged? = error else {
                    Issue.record("\(String(describing: error))")
                    continue
                }
                #expect(try String(contentsOfFile: file.path, encoding: .utf8) == text)
            }
        }
    }
}
