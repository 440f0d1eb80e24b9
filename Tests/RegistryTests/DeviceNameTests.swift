import FoundationEssentials
import Model
import Samples
import Testing

@testable import Registry

@Suite struct DeviceNameTests {
    private let phone = UDID.sample
    private let name = SanitizedText("Anna’s iPhone")

    @Test func `a new endpoint on a phone is named after the app and the phone`() throws {
        var table = EndpointTable()
        _ = table.setDeviceNames([phone: name])
        table.see(Seen.usb("com.example.shop", udid: phone))

        let endpoint = try #require(table.endpoints.first)
        #expect(endpoint.id.text == "shop-annas-iphone")
        #expect(endpoint.location.deviceName == name)
    }

    @Test func `an app on an Android phone is an app on a phone too, and needs no approval`() throws {
        let android = try #require(UDID(androidSerial: "R58M12ABCDE"))
        var table = EndpointTable()
        _ = table.setDeviceNames([android: SanitizedText("Pixel 8")])
        table.see(Seen.usb("com.example.shop", udid: android))

        var restarted = EndpointTable(records: table.records)
        restarted.see(Seen.usb("com.example.shop", udid: android, port: 4_001))

        let endpoint = try #require(restarted.endpoints.first)
        #expect(endpoint.id.text == "shop-pixel-8" && endpoint.sources == [.adb])
        #expect(ApprovalPolicy.approvedRoutes(of: endpoint, nil).map(\.route) == endpoint.routes.map(\.route))
        #expect(restarted.endpoints.count == 1)
    }

    @Test func `an endpoint that has an ID keeps it when its phone reports a name or a new one`() throws {
        var table = EndpointTable(Seen.usb("com.example.shop", udid: phone))
        #expect(table.endpoints.map(\.id.text) == ["shop-phone-5e6f70"])

        let changes = table.setDeviceNames([phone: name])
        #expect(changes.count == 1)
        #expect(table.endpoints.map(\.id.text) == ["shop-phone-5e6f70"])
        #expect(table.endpoints.first?.location.deviceName == name)
        #expect(table.setDeviceNames([phone: name]).isEmpty)

        _ = table.setDeviceNames([phone: SanitizedText("Bert’s iPhone")])
        #expect(table.endpoints.map(\.id.text) == ["shop-phone-5e6f70"])
        #expect(table.endpoints.first?.location.deviceName?.text == "Bert’s iPhone")
    }

    @Test func `an endpoint keeps its ID across a restart before and after its phone reports a new name`() throws {
        var table = EndpointTable()
        _ = table.setDeviceNames([phone: name])
        table.see(Seen.usb("com.example.shop", udid: phone))

        var restarted = EndpointTable(records: table.records)
        _ = restarted.setDeviceNames([phone: SanitizedText("Bert’s iPhone")])
        restarted.see(Seen.usb("com.example.shop", udid: phone))

        #expect(restarted.endpoints.map(\.id.text) == ["shop-annas-iphone"])
    }

    @Test func `two phones of one name have two endpoints, and one cannot take the other's ID`() throws {
        let other: UDID = "0123456789abcdef0123456789abcdef01234567"
        var table = EndpointTable()
        _ = table.setDeviceNames([phone: name, other: name])
        table.see(Seen.usb("com.example.shop", udid: phone), Seen.usb("com.example.shop", udid: other))

        #expect(table.endpoints.map(\.id.text) == ["shop-annas-iphone", "shop-annas-iphone-2"])
        #expect(table.endpoints.map(\.location.udid) == [phone, other])
    }

    @Test func `the name of one phone changes no endpoint of another phone or of the network`() throws {
        let other: UDID = "0123456789abcdef0123456789abcdef01234567"
        var table = EndpointTable(Seen.usb("com.example.shop", udid: other), Seen.network())

        #expect(table.setDeviceNames([phone: name]).isEmpty)
        #expect(table.endpoints.allSatisfy { $0.location.deviceName == nil })
    }

    @Test(arguments: [
        ("Anna’s iPhone", "annas-iphone"), ("Anna's  iPhone (2)", "annas-iphone-2"), ("iPhone 15", "iphone-15"),
        ("\u{1B}[31mRed", "31mred"), ("田中のiPhone", "iphone"), ("Überfön 7", "berf-n-7"),
    ])
    func `a phone's name becomes a machine name as the phone's own does`(name: String, machine: String) {
        #expect(IdentityKey.machineName(ofDeviceNamed: SanitizedText(name)) == machine)
    }

    @Test(arguments: ["田中", "’", "", "   ", "\u{202E}"])
    func `a name without letters or digits of ASCII leaves the UDID in the ID`(name: String) {
        var table = EndpointTable()
        _ = table.setDeviceNames([phone: SanitizedText(name)])
        table.see(Seen.usb("com.example.shop", udid: phone))

        #expect(table.endpoints.map(\.id.text) == ["shop-phone-5e6f70"])
    }
}
