import Model
import Testing

@testable import UsbmuxServer

@Suite struct DeviceEventHubTests {
    private let program = ListenerInfo(name: "me", bundleID: nil, libraryVersion: 3)

    @Test func `a listener hears what was there and each change once, in order`() async throws {
        let switchboard = DeviceEventHub()
        let (one, two) = (try Samples.device(Samples.one), try Samples.device(Samples.two))
        await switchboard.show([one])

        let seat = await switchboard.listen(1, as: program)
        await switchboard.show([one, two])
        await switchboard.show([two])
        await switchboard.leave(1)

        #expect(seat.phones.map(\.device) == [one])
        var news: [DeviceChange] = []
        for await change in seat.news { news.append(change) }
        #expect(
            news == [
                .attached(NumberedDevice(deviceID: 2, device: two)),
                .detached(NumberedDevice(deviceID: 1, device: one)),
            ]
        )
    }

    @Test func `a listener that does not keep up is let go, and others are not`() async throws {
        let switchboard = DeviceEventHub()
        let slow = await switchboard.listen(1, as: program)
        let phone = try Samples.device(Samples.one)
        for _ in 0..<DeviceEventHub.newsLimit {
            await switchboard.show(await switchboard.view.phones.phones.isEmpty ? [phone] : [])
        }
        let other = await switchboard.listen(2, as: program)
        #expect(await switchboard.view.listeners.keys.sorted() == [1, 2])

        await switchboard.show([phone])

        #expect(await switchboard.view.listeners.keys.sorted() == [2])
        var count = 0
        for await _ in slow.news { count += 1 }
        #expect(count == DeviceEventHub.newsLimit)
        await switchboard.leave(2)
        count = 0
        for await _ in other.news { count += 1 }
        #expect(count == 1)
    }
}
