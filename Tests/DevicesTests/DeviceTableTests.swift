import FoundationEssentials
import Model
import TestSupport
import Testing

@testable import Devices

@Suite struct DeviceTableTests {
    private let now = Date(timeIntervalSince1970: 1)

    private static func record(
        _ deviceID: UInt32,
        _ udid: String = Phones.one,
        _ transport: Device.Transport = .usb
    ) throws -> UsbmuxDeviceRecord {
        UsbmuxDeviceRecord(deviceID: deviceID, udid: try #require(UDID(udid)), transport: transport)
    }

    @Test func `a device is attached once and detached once`() throws {
        var table = DeviceTable()

        let came = table.attach(try Self.record(1), at: now)
        let again = table.attach(try Self.record(1), at: now)
        let went = table.detach(1)

        let device = Device(udid: try #require(UDID(Phones.one)), transport: .usb, attachedAt: now)
        #expect(came == [.attached(device)])
        #expect(again == [])
        #expect(went == [.detached(device)])
        #expect(table.detach(1) == [])
        #expect(table.devices == [])
    }

    @Test func `a replug reported in the wrong order causes no event, and the new DeviceID is used`() throws {
        var table = DeviceTable()
        _ = table.attach(try Self.record(1), at: now)

        #expect(table.attach(try Self.record(2), at: now) == [])
        #expect(table.detach(1) == [])

        #expect(table.record(of: try #require(UDID(Phones.one)))?.deviceID == 2)
    }

    @Test func `USB is preferred to the network`() throws {
        var table = DeviceTable()
        let udid = try #require(UDID(Phones.one))
        _ = table.attach(try Self.record(1), at: now)
        _ = table.attach(try Self.record(2, Phones.one, .network), at: now)

        #expect(table.devices.map(\.transport) == [.usb, .network])
        #expect(table.record(of: udid)?.deviceID == 1)
        _ = table.detach(1)
        #expect(table.record(of: udid)?.deviceID == 2)
    }

    @Test func `a DeviceID that is reused for another device detaches the first one`() throws {
        var table = DeviceTable()
        _ = table.attach(try Self.record(1), at: now)

        let events = table.attach(try Self.record(1, Phones.two), at: now)

        #expect(events.count == 2)
        #expect(table.record(of: try #require(UDID(Phones.one))) == nil)
        #expect(table.devices.map(\.udid.text) == [Phones.two])
    }

    @Test func `a list adds unreported devices and does not restore detached ones`() throws {
        var table = DeviceTable()
        _ = table.attach(try Self.record(1), at: now)
        table.expectList()
        _ = table.attach(try Self.record(3, Phones.two), at: now)
        _ = table.detach(1)

        let events = table.reconcile(with: [try Self.record(1), try Self.record(2, Phones.one, .network)], at: now)

        #expect(events.count == 1)
        #expect(table.devices.map(\.transport) == [.network, .usb])
    }

    @Test func `the number of devices is limited`() throws {
        var table = DeviceTable()
        for deviceID in 1...1000 as ClosedRange<UInt32> {
            let digits = String(deviceID, radix: 16)
            let udid = String(repeating: "0", count: 40 - digits.count) + digits
            _ = table.attach(try Self.record(deviceID, udid), at: now)
        }

        #expect(table.devices.count == DeviceTable.limit)
    }
}
