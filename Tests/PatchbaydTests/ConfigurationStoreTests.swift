import FoundationEssentials
import Model
import TOML
import TestSupport
import Testing

@testable import patchbayd

@Suite(.scratchFolder) struct ConfigurationStoreTests {
    private let scratch = ScratchFolder.current

    private func load(_ text: String, in scratch: ScratchFolder) throws -> LoadedConfiguration {
        let file = try scratch.write(text, to: "patchbay.toml")
        return try ConfigurationLoader(environment: [:]).load(file, installedProfiles: nil)
    }

    @Test func `every value has its source`() async throws {
        let text = "\n[api]\nport = 9000\n[devices]\nusbmuxd = \"/x\"\n[broker]\nsocket = \"/from-file\"\n"
        let store = ConfigurationStore(
            try load(text, in: scratch),
            overrides: [
                .init(key: "broker.socket", value: "/s", source: .option, place: "--socket"),
                .init(key: "broker.socket", value: "/t", source: .environment, place: "$PATCHBAY_SOCKET"),
                .init(key: "devices.usbmuxd", value: "/y", source: .environment, place: "$USBMUXD_SOCKET_ADDRESS"),
                .init(key: "broker.state_directory", value: "/d", source: .default, place: nil),
            ]
        )
        let entries = Dictionary(await store.entries().map { ($0.key, $0) }) { one, _ in one }

        #expect(
            entries["api.port"]
                == .init(key: "api.port", value: "9000", source: .file, place: scratch.file("patchbay.toml:3"))
        )
        #expect(entries["broker.socket"]?.place == "--socket")
        #expect(entries["broker.socket"]?.value == "\"/s\"")
        // A key of the file replaces a variable of the environment.
        #expect(entries["devices.usbmuxd"]?.value == "\"/x\"")
        #expect(entries["broker.state_directory"]?.value == "\"/d\"")
        #expect(entries["mcp.all"] == .init(key: "mcp.all", value: "false", source: .default))
        #expect(entries["api.remote"]?.value == nil)
        #expect(entries.count == ConfigurationKey.all.count)
    }

    @Test func `a reload applies some keys, and names those that need a restart`() async throws {
        let store = ConfigurationStore(try load("", in: scratch), overrides: [])
        let text = """
            [broker]
            log_level = "debug"
            [api]
            port = 9000
            [[endpoint]]
            name = "x"
            address = "::1"
            port = 1
            """

        let changed = await store.adopt(try load(text, in: scratch))

        #expect(changed.filter(\.isReloadable).map(\.name) == ["broker.log_level", "endpoint"])
        #expect(changed.filter { !$0.isReloadable }.map(\.name) == ["api.port"])
        let port = await store.entries().first { $0.key == "api.port" }
        #expect(port?.value == "7282")
        #expect(port?.pending == "9000")
        #expect(await store.effective.endpoints.count == 1)
        #expect(await store.effective.api.port == 7_282)

        let again = await store.adopt(try load(text, in: scratch))
        #expect(again.map(\.name) == ["api.port"])
    }

    @Test func `an option keeps its value in a reload`() async throws {
        var loaded = try load("", in: scratch)
        loaded.configuration.broker.logLevel = "trace"
        let store = ConfigurationStore(
            loaded,
            overrides: [.init(key: "broker.log_level", value: "trace", source: .option, place: "--log-level")]
        )

        let changed = await store.adopt(try load("[broker]\nlog_level = \"error\"", in: scratch))

        #expect(changed.isEmpty)
        #expect(await store.effective.broker.logLevel == "trace")
    }
}
