import Glibc
import Model
import SystemIO
import Testing

@Suite(.timeLimit(.minutes(1)))
struct DialTests {
    private func failure(_ route: LANRoute, within limit: Duration = .seconds(5)) async -> DialError? {
        do {
            _ = try await LANDialer(limit: limit).dial(.lan(route)).release()
            return nil
        } catch {
            return error as? DialError
        }
    }

    @Test func `a stream that was dialled sends small writes without delay`() async throws {
        let listener = try Listener(on: .ipv6(1, port: 0, scope: 0))
        let route = LANRoute(address: "::1", port: listener.address.port ?? 0)

        let carrier = try await LANDialer().dial(.lan(route))

        var value: CInt = 0
        var length = socklen_t(MemoryLayout<CInt>.size)
        getsockopt(carrier.descriptor.number, CInt(IPPROTO_TCP), TCP_NODELAY, &value, &length)
        #expect(value == 1)
        #expect(carrier.halfClose == .propagates)
    }

    @Test func `a port where nobody listens is refused`() async throws {
        let listener = try Listener(on: .ipv4(INADDR_LOOPBACK, port: 0))
        let port = listener.address.port ?? 0
        listener.close()

        let failure = await failure(LANRoute(address: "127.0.0.1", port: port))

        #expect(failure?.reason == .refused)
        #expect(failure?.description.contains("127.0.0.1:\(port)") == true)
    }

    @Test(arguments: ["0.0.0.0", "::", "224.0.0.251", "ff02::fb", "255.255.255.255", "example.com", ""])
    func `what is not one machine's address is not dialled`(_ address: String) async {
        #expect(await failure(LANRoute(address: address, port: 80))?.reason == .forbidden)
    }

    @Test func `port 0 is not dialled`() async {
        #expect(await failure(LANRoute(address: "127.0.0.1", port: 0))?.reason == .forbidden)
    }

    @Test func `a link-local address needs its interface`() async {
        #expect(await failure(LANRoute(address: "fe80::1", port: 80))?.reason == .unreachable)
    }

    @Test func `a phone is not reached through the network`() async throws {
        let udid = try #require(UDID("00008030-001A2B3C4D5E6F70"))

        await #expect(throws: DialError.self) {
            _ = try await LANDialer().dial(.usb(USBRoute(udid: udid, port: 1))).release()
        }
    }

    @Test func `who does not answer in time is given up, and leaves nothing behind`() async throws {
        // A queue of one that is full: the kernel drops further connection requests.
        let listener = try Listener(on: .ipv4(INADDR_LOOPBACK, port: 0), backlog: 0)
        let waiting = try await listener.address.connect(within: .seconds(5))
        let route = LANRoute(address: "127.0.0.1", port: listener.address.port ?? 0)

        let failure = await failure(route, within: .milliseconds(100))

        #expect(failure?.reason == .timedOut)
        withExtendedLifetime(waiting.number) {}
    }

    @Test func `the limit of descriptors is as high as it may be`() throws {
        let limit = try FileDescriptorLimit.raise()

        #expect(limit.soft == limit.hard)
        #expect(try FileDescriptorLimit.current() == limit)
    }

    @Test func `an actor on a thread of its own blocks nobody else's`() async {
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
