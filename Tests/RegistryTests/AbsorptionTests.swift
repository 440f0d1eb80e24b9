import FoundationEssentials
import Model
import Samples
import Testing

@testable import Registry

/// Apps that report their name late, or not at every launch.
@Suite struct AbsorptionTests {
    private let nameless = EndpointID(app: SanitizedText("appreveal"), location: "phone-5e6f70")

    @Test func `an app that reports its name late is one endpoint, and its first ID stays an alias`() throws {
        let phone = UDID.sample
        var table = EndpointTable(Seen.usb(udid: phone))
        #expect(table.endpoints.map(\.id) == [nameless])

        let changes = table.see(Seen.usb("com.example.shop", udid: phone))

        #expect(table.endpoints.map(\.id.text) == ["shop-phone-5e6f70"])
        #expect(changes.count == 2)
        #expect(table[nameless]?.id.text == "shop-phone-5e6f70")
        #expect(EndpointTable(records: table.records)[nameless]?.id.text == "shop-phone-5e6f70")
    }

    @Test func `a relaunch that starts without a name ends as the known endpoint`() throws {
        let phone = UDID.sample
        var table = EndpointTable()
        let app = Seen.usb("com.example.shop", udid: phone)
        for sighting in [app, Seen.usb(udid: phone), app] {
            table.see(sighting)
            if sighting != app { #expect(table.endpoints.count == 2) }
            table.lose(sighting.id)
        }

        table.see(app)

        #expect(table.endpoints.map(\.id.text) == ["shop-phone-5e6f70"])
        #expect(table.endpoints.first?.state == .online)
    }

    @Test func `a port that is later identified as a debug server leaves no second endpoint`() throws {
        let phone = UDID.sample
        var table = EndpointTable()

        table.see(Seen.usb(udid: phone, kind: .tcp), Seen.usb(udid: phone))
        #expect(table.endpoints.map(\.id) == [nameless])
        table.see(Seen.usb("com.example.shop", udid: phone))

        #expect(table.endpoints.map(\.id.text) == ["shop-phone-5e6f70"])
    }

    @Test func `an unnamed app on another port or device is kept`() throws {
        let phone = UDID.sample
        let other: UDID = "0123456789abcdef0123456789abcdef01234567"
        var table = EndpointTable(Seen.usb(udid: phone, port: 4_001), Seen.usb(udid: other))

        table.see(Seen.usb("com.example.shop", udid: phone))

        #expect(table.endpoints.count == 3)
    }

    @Test(arguments: [EndpointKind.appreveal, .tcp])
    func `a partly failed probe of a relaunch lists no second endpoint, also after a restart`(kind: EndpointKind) throws
    {
        let app = Seen.usb("com.example.shop")
        let partial = Seen.usb(kind: kind, isPartial: true)
        var table = EndpointTable(app)
        table.lose(app.id)
        for var table in [table, EndpointTable(records: table.records)] {
            #expect(table.see(partial).isEmpty)
            #expect(table.endpoints.map(\.id.text) == ["shop-phone-5e6f70"])
            #expect(table.endpoints.first?.state == .offline, "it may be another app")

            table.see(app)
            #expect(table.endpoints.map(\.id.text) == ["shop-phone-5e6f70"])
            #expect(table.endpoints.first?.state == .online)
        }
    }

    @Test func `a partly failed probe of a running app changes nothing`() throws {
        var table = EndpointTable(Seen.usb("com.example.shop"))

        #expect(table.see(Seen.usb(kind: .tcp, isPartial: true), Seen.usb(isPartial: true)).isEmpty)

        #expect(table.endpoints.map(\.id.text) == ["shop-phone-5e6f70"])
        #expect(table.endpoints.first?.state == .online)
    }

    @Test func `a partly failed probe lists a server on a new port, and finds the one that it listed again`() throws {
        let silent = Seen.usb(port: 4_001, kind: .tcp, isPartial: true)
        var table = EndpointTable(Seen.usb("com.example.shop"), silent)
        let ids = table.endpoints.map(\.id)
        #expect(ids.count == 2)

        table.lose(silent.id)
        table.see(silent)

        #expect(table.endpoints.map(\.id) == ids)
        #expect(table.endpoints.allSatisfy { $0.state == .online })
    }

    @Test func `a former ID still refers to its app, and no other server gets it`() throws {
        let phone = UDID.sample
        var table = EndpointTable(Seen.usb(udid: phone), Seen.usb("com.example.shop", udid: phone))

        table.see(Seen.usb(udid: phone, port: 4_001))

        #expect(table[nameless]?.routes.first?.port == 4_000)
        #expect(table.endpoints.map(\.id.text) == ["appreveal-phone-5e6f70-2", "shop-phone-5e6f70"])
    }
}
