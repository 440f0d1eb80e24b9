import Model
import TestSupport
import Testing

@testable import Devices

@Suite struct DeviceEventHubTests {
    private let program = ListenerInfo(name: "me", bundleID: nil, libraryVersion: 3)

    @Test func `a listener gets the current devices and then each change once, in order`() async throws {
        let hub = DeviceEventHub()
        let (one, two) = (try ServerFixture.device(Phones.one), try ServerFixture.device(Phones.two))
        await hub.update([one])

        let subscription = await hub.subscribe(1, as: program)
        await hub.update([one, two])
        await hub.update([two])

        #expect(subscription.devices.map(\.device) == [one])
        var events: [DeviceChange] = []
        for await change in subscription.changes.prefix(2) { events.append(change) }
        #expect(
            events == [
                .attached(NumberedDevice(deviceID: 2, device: two)),
                .detached(NumberedDevice(deviceID: 1, device: one)),
            ]
        )
    }

    @Test func `a listener that does not keep up is disconnected, and others stay`() async throws {
        let hub = DeviceEventHub()
        let slow = await hub.subscribe(1, as: program)
        let device = try ServerFixture.device(Phones.one)
        for _ in 0..<DeviceEventHub.bufferLimit {
            await hub.update(await hub.snapshot.devices.devices.isEmpty ? [device] : [])
        }
        let other = await hub.subscribe(2, as: program)

        await hub.update([device])

        var count = 0
        for await _ in slow.changes { count += 1 }
        #expect(count == DeviceEventHub.bufferLimit)
        let attached = NumberedDevice(deviceID: UInt32(DeviceEventHub.bufferLimit / 2 + 1), device: device)
        #expect(await other.changes.first { _ in true } == .attached(attached))
    }

    @Test func `the listeners are listed until their connections end`() async {
        let hub = DeviceEventHub()
        _ = await hub.subscribe(1, as: program)
        _ = await hub.subscribe(2, as: program)
        #expect(await hub.snapshot.listeners.keys.sorted() == [1, 2])

        await hub.unsubscribe(1)

        #expect(await hub.snapshot.listeners.keys.sorted() == [2])
    }
}
