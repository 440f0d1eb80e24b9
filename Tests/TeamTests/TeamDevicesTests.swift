import FoundationEssentials
import Model
import Samples
import Testing

@testable import Team
@testable import Registry

/// The list of phones of all hosts of a team.
@Suite(.timeLimit(.minutes(1))) struct TeamDevicesTests {
    private let hosts: ListedHosts
    private let local = FakeDevices()
    private let devices: TeamDevices

    init() throws {
        hosts = ListedHosts(own: "lab1")
        devices = TeamDevices(local: local, hosts: hosts)
    }

    private func host(_ name: String) throws -> HostName { try #require(HostName(name)) }

    private func phone(_ transport: Device.Transport = .usb) throws -> Device {
        let udid: UDID = "00008030-001A2B3C4D5E6F70"
        return Device(udid: udid, transport: transport, attachedAt: Date(timeIntervalSince1970: 0))
    }

    /// Runs the service, and calls `body` with the lists as text: one word per phone, such as `lab1+lab2`.
    private func withLists(_ body: (inout AsyncStream<String>.Iterator) async throws -> Void) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await devices.run() }
            let lists = await devices.deviceLists()
            let (texts, continuation) = AsyncStream.makeStream(of: String.self)
            group.addTask { for await list in lists { continuation.yield(Self.text(list)) } }
            var iterator = texts.makeAsyncIterator()
            try await body(&iterator)
            group.cancelAll()
            try await group.waitForAll()
        }
    }

    private static func text(_ devices: [Device]) -> String {
        let phones = devices.map { device in
            device.routes.map { routes in
                routes.map { "\($0.host.name)\($0.host.staleSince == nil ? "" : "?")" }.joined(separator: "+")
            } ?? "alone"
        }
        return phones.joined(separator: " ")
    }

    /// Reads lists up to an expected one. Lists in between may be skipped.
    private func expect(_ text: String, _ lists: inout AsyncStream<String>.Iterator) async {
        while let next = await lists.next(), next != text {}
    }

    @Test func `a phone of two hosts is one device, and follows the states of the hosts`() async throws {
        try await withLists { lists in
            await local.set([try phone()])
            await expect("lab1", &lists)

            _ = hosts.setOthers([HostStatus(name: try host("lab2"))])
            await devices.set([try phone(.network)], of: try host("lab2"))
            await expect("lab1+lab2", &lists)
            #expect(await devices.devices().count == 1)

            let time = Date(timeIntervalSince1970: 1)
            _ = hosts.setOthers([HostStatus(name: try host("lab2"), staleSince: time)])
            await expect("lab1+lab2?", &lists)
            await local.set([])
            await expect("lab2?", &lists)
            _ = hosts.setOthers([HostStatus(name: try host("lab2"))])
            await expect("lab2", &lists)
            await devices.set([], of: try host("lab2"))
            await expect("", &lists)
        }
    }
}
