import Model
import Registry
import Samples
import Testing

@Suite struct EndpointAbilitiesTests {
    private static let appDebug = EndpointAbilities(capabilities: ["screenshot"], limits: ["no typing"])

    private var table = EndpointTable(abilities: [.appDebug: appDebug])

    /// Reports a server of a kind and returns its endpoint.
    private mutating func see(_ kind: EndpointKind, source: Sighting.Source = .config) throws -> Endpoint {
        let sighting = Sighting.sample(source: source, key: "shop", kind: kind)
        table.see(sighting)
        return try #require(table.endpoint(seenAs: sighting.id))
    }

    @Test mutating func `an endpoint has the abilities of its profile, also while it is offline`() throws {
        let app = try see(.appDebug)
        table.lose(Sighting.ID(source: .config, key: "shop"))

        for endpoint in [app, try #require(table[app.id])] {
            #expect(endpoint.capabilities == ["screenshot"] && endpoint.limits == ["no typing"])
        }
    }

    @Test(arguments: [EndpointKind.debug, .openagents, .dartVM, .tcp, .web])
    mutating func `a kind that can only be tunnelled says what to use`(kind: EndpointKind) throws {
        let endpoint = try see(kind)

        #expect(endpoint.isTunnelOnly)
        #expect(endpoint.capabilities == [])
        #expect(endpoint.limits == ["no MCP tools: use port_forward or patchbay forward"])
        #expect(endpoint.tunnelRefusal == nil)
    }

    @Test mutating func `an app that is connected to the state debugger has tools, also after it has left`() throws {
        let app = try see(.debug, source: .debuglink)
        table.lose(Sighting.ID(source: .debuglink, key: "shop"))

        for endpoint in [app, try #require(table[app.id])] {
            #expect(!endpoint.isTunnelOnly)
            #expect(endpoint.capabilities == ["tools"] && endpoint.limits == ["no tunnels: use its tools"])
            #expect(endpoint.tunnelRefusal == "\(app.id) connects to Patchbay itself, so no tunnel can lead to it")
        }
    }

    @Test mutating func `a server's own capabilities are kept until its kind changes`() throws {
        let app = try see(.mcp)
        #expect(app.capabilities == [] && app.limits == [])

        let change = try #require(table.setCapabilities(["tools", "resources"], of: app.id).first)
        guard case .changed(let changed) = change else {
            Issue.record("\(change)")
            return
        }
        #expect(changed.capabilities == ["tools", "resources"])
        #expect(table.setCapabilities(["tools", "resources"], of: app.id) == [])
        #expect(try see(.mcp).capabilities == ["tools", "resources"])
        #expect(try see(.appreveal).capabilities == [])
    }

    @Test mutating func `a server cannot change the abilities of its profile`() throws {
        let app = try see(.appDebug)

        #expect(table.setCapabilities(["tools"], of: app.id) == [])
        #expect(table[app.id]?.capabilities == ["screenshot"])
    }

    @Test mutating func `an endpoint of an earlier run gets the abilities of the current profiles`() throws {
        var record = PersistedEndpoint(endpoint: try see(.appDebug), source: .config, keys: [])
        record.endpoint.capabilities = nil
        record.endpoint.limits = nil

        let restored = EndpointTable(records: [record], abilities: [.appDebug: Self.appDebug]).endpoints

        #expect(restored.map(\.capabilities) == [["screenshot"]])
    }
}
