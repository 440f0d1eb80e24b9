import Glibc
import Model
import Rig
import Sockets
import Testing

@testable import Devices

@Suite struct LibusbmuxdClientTests {
    @Test func `it is not called where it would abort the process`() async throws {
        try await withScratchFolder { scratch in
            let fake = try FakeUsbmuxd(in: scratch) { $0.behave(phones: [(1, Samples.phone)]) }
            let budget = MuxBudget()
            // Every process has descriptors from 0 to 2, so that the next one is beyond this.
            let client = LibusbmuxdClient(address: fake.address, budget: budget, descriptorLimit: 1)

            let error = await #expect(throws: UsbmuxError.self) { _ = try await client.listDevices() }
            await #expect(throws: UsbmuxError.self) { _ = try await client.connect(deviceID: 1, port: 1) }
            await #expect(throws: UsbmuxError.self) { _ = try await client.readBUID() }

            #expect(error?.description.contains("devices.client") == true)
            #expect(fake.accepted == 0)
            #expect(budget.used == 0)
        }
    }

    @Test func `its streams do not block, and hold a place`() async throws {
        try await withScratchFolder { scratch in
            let fake = try FakeUsbmuxd(in: scratch) { $0.behave(phones: [], welcome: "hello") }
            let budget = MuxBudget()
            let client = LibusbmuxdClient(address: fake.address, budget: budget)
            do {
                let carrier = try await client.connect(deviceID: 1, port: 1)

                #expect(try await read(5, from: carrier) == "hello")
                // recv(2) would wait here for ever if it could.
                var byte: UInt8 = 0
                #expect(recv(carrier.descriptor.number, &byte, 1, 0) == -1)
                #expect(budget.used == 1)
            }
            #expect(budget.used == 0)
        }
    }

    @Test func `a usbmuxd that answers nothing does not hold its caller for ever`() async throws {
        try await withScratchFolder { scratch in
            let fake = try FakeUsbmuxd(in: scratch) { $0.waitForEnd() }
            let client = LibusbmuxdClient(address: fake.address)
            let start = ContinuousClock.now

            let call = await withTaskGroup(of: Bool.self) { group in
                group.addTask {
                    do {
                        _ = try await client.connect(deviceID: 1, port: 1)
                        return false
                    } catch is CancellationError {
                        return true
                    } catch {
                        return false
                    }
                }
                try? await eventually("the call is under way") { fake.accepted > 0 }
                group.cancelAll()
                return await group.next() ?? false
            }

            #expect(call)
            #expect(ContinuousClock.now - start < .seconds(4))
        }
    }
}
