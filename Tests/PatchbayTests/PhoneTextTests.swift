import FoundationEssentials
import Model
import Samples
import Testing

@testable import patchbay

/// What the commands say about phones.
@Suite struct PhoneTextTests {
    @Test func `show has the system and the model of the phone`() throws {
        let pixel = try #require(UDID(androidSerial: "R58M12ABCDE"))
        let endpoint = SampleEndpoints.endpoint("com.example.shop", on: "Pixel 8", phone: pixel)
        var device = Device(udid: pixel, transport: .usb, attachedAt: SampleEndpoints.date)
        (device.productType, device.productVersion) = (SanitizedText("Pixel 8"), SanitizedText("15"))

        let text = ShowCommand.text(endpoint, device: device, now: SampleEndpoints.date, isColoured: false)
        #expect(text.contains("\n  system      Android 15, Pixel 8\n"), "\(text)")
    }

    @Test func `watch has the name, the system and the model of a phone, also when they are reported later`() throws {
        let pixel = try #require(UDID(androidSerial: "R58M12ABCDE"))
        let new = Device(udid: pixel, transport: .usb, attachedAt: SampleEndpoints.date)
        var named = new
        (named.name, named.productType) = (SanitizedText("Bench 3"), SanitizedText("Pixel 8"))
        named.productVersion = SanitizedText("15")
        var refused = named
        refused.state = .unauthorized

        func lines(_ before: Device?, _ now: Device?) -> [String] {
            func phones(_ device: Device?) -> [UDID: Device] { device.map { [$0.udid: $0] } ?? [:] }
            return WatchPrinter.lines(from: phones(before), to: phones(now))
        }
        #expect(lines(nil, new) == ["+ phone android-R58M12ABCDE (Android)"])
        #expect(lines(new, named) == ["~ phone android-R58M12ABCDE (Bench 3, Android 15, Pixel 8)"])
        #expect(lines(named, named) == [])
        #expect(lines(named, refused).first?.contains("(Bench 3, Android 15, Pixel 8) is unauthorized: ") == true)
        #expect(lines(refused, named) == ["+ phone android-R58M12ABCDE (Bench 3, Android 15, Pixel 8)"])
        #expect(lines(named, nil) == ["- phone android-R58M12ABCDE (Bench 3, Android 15, Pixel 8)"])
    }

    @Test func `status counts the phones that are not ready, and names those that wait for a person`() throws {
        let devices = try Device.State.allCases.filter { $0 != .ready }.map { state in
            let udid = try #require(UDID(androidSerial: state.rawValue))
            var device = Device(udid: udid, transport: .usb, attachedAt: SampleEndpoints.date)
            device.state = state
            return device
        }
        var status = BrokerStatus(
            version: "0.1.0",
            pid: 42,
            startedAt: SampleEndpoints.date,
            revision: 7,
            endpoints: [:],
            devices: 2,
            tunnels: 0,
            sources: []
        )

        let text = StatusCommand.text(status, unusable: devices, socket: "/x", isColoured: false)
        #expect(text.contains("phones     2 ready, 6 not: see `patchbay devices`"), "\(text)")
        let named = text.split(separator: "\n").filter { $0.hasPrefix("warning: phone: ") }
        #expect(named.count == 3 && named.contains { $0.contains("android-unauthorized has not allowed") }, "\(text)")

        status.devices = 1
        #expect(StatusCommand.text(status, socket: "/x", isColoured: false).contains("phones     1 attached"))
    }
}
