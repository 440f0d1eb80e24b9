import Model
import Testing

@testable import UsbmuxServer

@Suite struct DeviceIDAllocatorTests {
    @Test func `numbers begin at 1 and stay as long as the phone does`() throws {
        var book = DeviceIDAllocator()
        let (one, two) = (try Samples.device(Samples.one), try Samples.device(Samples.two))

        #expect(book.update([one]) == [.attached(NumberedDevice(deviceID: 1, device: one))])
        #expect(book.update([one, two]) == [.attached(NumberedDevice(deviceID: 2, device: two))])
        #expect(book.update([two, one]).isEmpty)

        #expect(book.phones.map(\.deviceID) == [1, 2])
    }

    @Test func `a number that was given is not given again`() throws {
        var book = DeviceIDAllocator()
        let (one, two) = (try Samples.device(Samples.one), try Samples.device(Samples.two))
        _ = book.update([one])

        #expect(book.update([]) == [.detached(NumberedDevice(deviceID: 1, device: one))])
        #expect(book.phone(1) == nil)
        #expect(book.update([two]) == [.attached(NumberedDevice(deviceID: 2, device: two))])
        #expect(book.update([one, two]) == [.attached(NumberedDevice(deviceID: 3, device: one))])
        #expect(book.phone(1) == nil)
    }

    @Test func `a replug that nobody saw the middle of is told as both`() throws {
        var book = DeviceIDAllocator()
        let (before, after) = (try Samples.device(Samples.one), try Samples.device(Samples.one, since: 5))
        _ = book.update([before])

        #expect(
            book.update([after]) == [
                .detached(NumberedDevice(deviceID: 1, device: before)),
                .attached(NumberedDevice(deviceID: 2, device: after)),
            ]
        )
    }

    @Test func `a phone that only the network shows is not listed`() throws {
        var book = DeviceIDAllocator()

        #expect(book.update([try Samples.device(Samples.one, .network)]).isEmpty)
        #expect(book.phones.isEmpty)
    }
}
