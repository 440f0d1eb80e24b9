import Model
import TestSupport
import Testing

@testable import Devices

@Suite struct DeviceIDAllocatorTests {
    @Test func `IDs begin at 1 and stay the same while the device is attached`() throws {
        var allocator = DeviceIDAllocator()
        let (one, two) = (try ServerFixture.device(Phones.one), try ServerFixture.device(Phones.two))

        #expect(allocator.update([one]) == [.attached(NumberedDevice(deviceID: 1, device: one))])
        #expect(allocator.update([one, two]) == [.attached(NumberedDevice(deviceID: 2, device: two))])
        #expect(allocator.update([two, one]).isEmpty)

        #expect(allocator.devices.map(\.deviceID) == [1, 2])
    }

    @Test func `an ID is never reused`() throws {
        var allocator = DeviceIDAllocator()
        let (one, two) = (try ServerFixture.device(Phones.one), try ServerFixture.device(Phones.two))
        _ = allocator.update([one])

        #expect(allocator.update([]) == [.detached(NumberedDevice(deviceID: 1, device: one))])
        #expect(allocator.device(1) == nil)
        #expect(allocator.update([two]) == [.attached(NumberedDevice(deviceID: 2, device: two))])
        #expect(allocator.update([one, two]) == [.attached(NumberedDevice(deviceID: 3, device: one))])
        #expect(allocator.device(1) == nil)
    }

    @Test func `a replug between two updates is reported as detached and attached`() throws {
        var allocator = DeviceIDAllocator()
        let (before, after) = (try ServerFixture.device(Phones.one), try ServerFixture.device(Phones.one, since: 5))
        _ = allocator.update([before])

        #expect(
            allocator.update([after]) == [
                .detached(NumberedDevice(deviceID: 1, device: before)),
                .attached(NumberedDevice(deviceID: 2, device: after)),
            ]
        )
    }

    @Test func `a device that reports its name keeps its ID and is not reported again`() throws {
        var allocator = DeviceIDAllocator()
        var device = try ServerFixture.device(Phones.one)
        _ = allocator.update([device])

        device.name = SanitizedText("Anna’s iPhone")

        #expect(allocator.update([device]).isEmpty)
        #expect(allocator.devices.map(\.deviceID) == [1])
    }

    @Test func `a network device is not listed`() throws {
        var allocator = DeviceIDAllocator()

        #expect(allocator.update([try ServerFixture.device(Phones.one, .network)]).isEmpty)
        #expect(allocator.devices.isEmpty)
    }
}
