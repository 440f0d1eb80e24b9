import FoundationEssentials
import Glibc
import TestSupport
import Testing

@testable import patchbayd

/// The files that the configuration is read from.
@Suite(.scratchFolder) struct ConfigurationLoaderTests {
    private let scratch = ScratchFolder.current

    @Test func `errors of profiles and of the configuration are reported together`() async throws {
        let file = try scratch.write(
            "[api]\nport = 0\n[[endpoint]]\nname = \"x\"\nkind = \"lab\"\n",
            to: "patchbay.toml"
        )
        try scratch.makeFolder("profiles")
        try scratch.write("titel = 1\n", to: "profiles/a.toml")

        let error = #expect(throws: ConfigurationError.self) {
            try ConfigurationLoader(environment: [:]).load(file, installedProfiles: nil)
        }

        let lines = (error?.description ?? "").split(separator: "\n")
        #expect(lines.contains { $0.contains("a.toml:1:1: titel") }, "\(lines)")
        #expect(lines.contains { $0.contains("patchbay.toml:2:1: api.port") }, "\(lines)")
        // The kind may belong to the profile that cannot be read.
        #expect(!lines.contains { $0.contains("there is no kind") }, "\(lines)")
    }

    @Test func `the error for an unreadable file has the reason`() throws {
        func errorMessage(_ path: String) -> String {
            do {
                return "\(try ConfigurationLoader(environment: [:]).load(path))"
            } catch { return "\(error)" }
        }
        let binary = FileManager.default.temporaryDirectory.appending(path: "patchbay-\(getpid()).toml")
        try Data([0xFF, 0xFE, 0]).write(to: binary)
        defer { try? FileManager.default.removeItem(at: binary) }

        #expect(errorMessage("/none.toml") == "/none.toml cannot be read: No such file or directory; check the path")
        #expect(errorMessage("/tmp") == "/tmp cannot be read: it is a folder; name a TOML file")
        #expect(errorMessage(binary.path).contains("is not text in UTF-8"))
    }

    @Test func `a missing file gives the default configuration, and the searched paths are reported`() throws {
        let environment = ["HOME": "/nowhere"]
        let loader = ConfigurationLoader(environment: environment)
        let configuration = try loader.load(loader.file(explicit: nil)).configuration

        #expect(configuration == Configuration())
        let origin = Patchbayd.origin(of: configuration, environment)
        #expect(origin.contains("/nowhere/.config/patchbay/patchbay.toml nor at /etc/patchbay/patchbay.toml"))
    }
}
