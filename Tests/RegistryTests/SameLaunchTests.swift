import FoundationEssentials
import Model
import Samples
import Testing

@testable import Registry

/// An approved advertisement and an app on a cable whose servers accepted the same secret.
@Suite struct SameLaunchTests {
    private let cable = Seen.usb("com.example.shop")
    private let advert = Seen.network()

    /// A table with both endpoints, each approved and with a secret of its own.
    private func table() throws -> (EndpointTable, wireless: EndpointID, cabled: EndpointID) {
        var table = EndpointTable([advert, cable])
        let wireless = try #require(table.endpoint(seenAs: advert.id)).id
        let cabled = try #require(table.endpoint(seenAs: cable.id)).id
        for id in [wireless, cabled] { try setTrust(of: id, in: &table) }
        return (table, wireless, cabled)
    }

    private func setTrust(of id: EndpointID, in table: inout EndpointTable) throws {
        let endpoint = try #require(table[id])
        let approval = endpoint.sources == [.bonjour] ? EndpointTrust.approving(endpoint).approval : nil
        let secret = try #require(ApprovalPolicy.secretBinding(for: endpoint.routes[0], approval))
        _ = table.setTrust(EndpointTrust(approval: approval, secret: [secret]), of: id, at: now)
    }

    private func proof(_ wireless: EndpointID, _ cabled: EndpointID, in table: EndpointTable) throws -> SameLaunch {
        let (one, other) = (try #require(table[wireless]), try #require(table[cabled]))
        return SameLaunch(wireless: one, over: one.routes[0], cabled: other, over: other.routes[0])
    }

    @Test func `a list shows an approved advertisement and a cabled app with the same launch as one endpoint`() throws {
        var (table, wireless, cabled) = try table()
        #expect(table.endpoints.combined.count == 2)

        let changes = table.setSameLaunch(try proof(wireless, cabled, in: table))

        #expect(changes.map(\.endpoint.id) == [wireless] && changes.first?.endpoint.sameLaunchAs == cabled)
        let listed = table.endpoints.combined
        #expect(listed.map(\.id) == [cabled])
        #expect(listed.first?.routes.count == 2 && listed.first?.combinedWith?.map(\.id) == [wireless])
        #expect(listed.first?.sources == [.bonjour, .usbmuxd])
    }

    @Test func `the same launch moves no approval, secret, route or ID`() throws {
        var (table, wireless, cabled) = try table()
        let before = (try #require(table[wireless]), try #require(table[cabled]))

        _ = table.setSameLaunch(try proof(wireless, cabled, in: table))

        var after = try #require(table[wireless])
        after.sameLaunchAs = nil
        #expect(after == before.0 && table[cabled] == before.1)
        let approval = EndpointTrust.approving(after).approval
        let combined = try #require(table.endpoints.combined.first)
        #expect(ApprovalPolicy.approvedRoutes(of: combined, nil).map(\.route) == before.1.routes.map(\.route))
        #expect(ApprovalPolicy.approvedRoutes(of: after, approval).map(\.route) == before.0.routes.map(\.route))
    }

    private enum End: CaseIterable {
        case unplugged, goodbye, otherPort, relaunch, secretDeleted, unapproved, mismatch, refused, rejected
    }

    @Test(arguments: End.allCases)
    private func `both are listed separately again when the launch, a route or its trust ends`(_ end: End) throws {
        var (table, wireless, cabled) = try table()
        _ = table.setSameLaunch(try proof(wireless, cabled, in: table))
        #expect(table.endpoints.combined.count == 1)
        let changes =
            switch end {
            case .unplugged: table.lose(cable.id)
            case .goodbye: table.lose(advert.id)
            case .otherPort: table.see(Seen.network(port: 4_001))
            case .relaunch:
                table.see(Seen.usb("com.example.shop", launchID: "b2"))
            case .secretDeleted: table.setTrust(.none, of: cabled, at: now)
            case .unapproved: table.setTrust(.none, of: wireless, at: now)
            case .mismatch:
                table.setMismatch(SanitizedText("com.example.bank"), on: advert.routes[0], of: wireless)
            case .refused: table.report(DialError(.refused, "refused"), of: wireless, at: now)
            case .rejected: table.endSameLaunch(of: cabled)
            }

        #expect(table.endpoints.combined.count == 2)
        #expect(changes.last { $0.endpoint.id == wireless }?.endpoint.sameLaunchAs == nil)
        #expect(changes.contains { $0.endpoint.id == wireless })
    }

    @Test func `a proof about an earlier launch, or about an unapproved advertisement, has no effect`() throws {
        var (table, wireless, cabled) = try table()
        let earlier = try proof(wireless, cabled, in: table)
        table.see(Seen.network(port: 4_001))
        #expect(table.setSameLaunch(earlier).isEmpty)

        table.see(advert)
        _ = table.setTrust(.none, of: wireless, at: now)
        #expect(table.setSameLaunch(earlier).isEmpty)
        #expect(table.endpoints.allSatisfy { $0.sameLaunchAs == nil })
    }

    @Test func `a probe without an answer keeps both together, and a restart of the broker does not`() throws {
        var (table, wireless, cabled) = try table()
        _ = table.setSameLaunch(try proof(wireless, cabled, in: table))

        _ = table.report(DialError(.timedOut, "silence"), of: wireless, at: now)
        #expect(table[wireless]?.state == .suspect && table.endpoints.combined.count == 1)

        #expect(EndpointTable(records: table.records).endpoints.allSatisfy { $0.sameLaunchAs == nil })
    }

    @Test func `a list without the cabled app shows the advertisement by itself`() throws {
        var (table, wireless, cabled) = try table()
        _ = table.setSameLaunch(try proof(wireless, cabled, in: table))

        let visible = table.endpoints.filter { $0.id == wireless }
        #expect(visible.combined == visible)
        let other = table.endpoints.filter { $0.id == cabled }
        #expect(other.combined == other)
    }
}
