import CLinux
import Glibc
import Model
import Samples
import SystemIO
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(1)))
struct DialTests {
    private func failure(_ route: NetworkRoute, within limit: Duration = .seconds(5)) async -> DialError? {
        do {
            _ = try await NetworkPlanner(limit: limit).dial(.network(route)).release()
            return nil
        } catch { return error as? DialError }
    }

    @Test func `a dialed stream sends small writes without delay`() async throws {
        let listener = try Listener(on: .ipv6(1, port: 0, scope: 0))
        let route = NetworkRoute(address: "::1", port: listener.address.port ?? 0)

        let connection = try await NetworkPlanner().dial(.network(route))

        var value: CInt = 0
        var length = socklen_t(MemoryLayout<CInt>.size)
        getsockopt(connection.descriptor.number, CInt(IPPROTO_TCP), TCP_NODELAY, &value, &length)
        #expect(value == 1)
        #expect(connection.halfClose == .propagates)
    }

    @Test func `a dial to a closed port fails with refused`() async throws {
        let listener = try Listener(on: .ipv4(INADDR_LOOPBACK, port: 0))
        let port = listener.address.port ?? 0
        listener.close()

        let failure = await failure(NetworkRoute(address: "127.0.0.1", port: port))

        #expect(failure?.reason == .refused)
        #expect(failure?.description.contains("127.0.0.1:\(port)") == true)
    }

    @Test(arguments: ["0.0.0.0", "::", "224.0.0.251", "ff02::fb", "255.255.255.255", "example.com", ""])
    func `an address that is not unicast is not dialed`(_ address: String) async {
        #expect(await failure(NetworkRoute(address: address, port: 80))?.reason == .forbidden)
    }

    @Test func `port 0 is not dialed`() async {
        #expect(await failure(NetworkRoute(address: "127.0.0.1", port: 0))?.reason == .forbidden)
    }

    @Test func `a link-local address without an interface is not dialed`() async {
        #expect(await failure(NetworkRoute(address: "fe80::1", port: 80))?.reason == .unreachable)
    }

    @Test(arguments: ["127.0.0.1", "127.0.0.2", "::1", "::ffff:127.0.0.1"])
    func `a registration does not lead to a listener of this process`(_ address: String) async throws {
        let listener = try Listener(on: .ipv6(0, port: 0, scope: 0))
        let port = try #require(listener.address.port)
        let registered = NetworkRoute(address: address, port: port, registration: "r1")

        let failure = await failure(registered)
        #expect(failure?.reason == .forbidden && failure?.description.contains("Patchbay itself") == true)
        #expect(await self.failure(NetworkRoute(address: address, port: port)) == nil)

        // The duplicate is the descriptor of another owner, such as NIO.
        let duplicate = try listener.duplicate()
        listener.close()
        #expect(await self.failure(registered)?.reason == .forbidden)
        close(duplicate.release())
        #expect(await self.failure(registered)?.reason == .refused)
    }

    @Test func `a USB route is not dialed by the LAN dialer`() async throws {
        let udid: UDID = "00008030-001A2B3C4D5E6F70"

        await #expect(throws: DialError.self) {
            _ = try await NetworkPlanner().dial(.usb(USBRoute(udid: udid, port: 1))).release()
        }
    }

    @Test func `a dial without an answer times out`() async throws {
        // The accept queue of length one is full, so the kernel drops further connection requests.
        let listener = try Listener(on: .ipv4(INADDR_LOOPBACK, port: 0), backlog: 0)
        let waiting = try await listener.address.connect(within: .seconds(5))
        let route = NetworkRoute(address: "127.0.0.1", port: listener.address.port ?? 0)

        let failure = await failure(route, within: .milliseconds(100))

        #expect(failure?.reason == .timedOut)
        withExtendedLifetime(waiting.number) {}
    }

    @Test func `raising sets the soft descriptor limit to the hard limit`() {
        let limit = ProcessLimits.raiseDescriptors()

        var actual = rlimit()
        let result = CLinux_get_descriptor_limit(&actual)
        #expect(result == 0)
        #expect(actual.rlim_cur == actual.rlim_max)
        #expect(limit == UInt64(actual.rlim_cur))
    }

    @Test func `an actor on a ThreadExecutor always runs on its own thread`() async {
        actor Pinned {
            nonisolated var unownedExecutor: UnownedSerialExecutor { ThreadExecutor.files.asUnownedSerialExecutor() }
            func thread() -> pthread_t { pthread_self() }
        }
        let pinned = Pinned()

        let first = await pinned.thread()
        for _ in 0..<100 { #expect(await pinned.thread() == first) }

        #expect(first != pthread_self())
    }
}
