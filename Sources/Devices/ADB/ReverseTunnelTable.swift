import Glibc
package import Logging
package import Model
import ServiceLifecycle
package import SystemIO

/// The ports of Android phones that lead to ports of this machine.
///
/// The tunnels are saved. While running, the table opens them on each phone at each attachment, because a phone forgets
/// them when it is unplugged. It opens them again when another program has closed them, and closes them at the end.
package actor ReverseTunnelTable: Service {
    /// A tunnel in the file.
    package struct Record: Hashable, Sendable, Codable {
        let udid: UDID
        let phonePort: UInt16
        let localPort: UInt16
    }

    /// The last request to a phone about one of its ports.
    private struct Rule {
        var localPort: UInt16
        var state: Tunnel.State
    }

    private struct Phone {
        var attachment: ADBReachablePhone?
        /// Also has closed tunnels that the phone has not confirmed. A later attachment confirms them.
        var rules: [UInt16: Rule] = [:]
        /// The generation that was last compared with the phone.
        var compared: UInt64 = 0
    }

    static let limit = 256
    /// The time that a phone has to confirm a change: one request in progress, and one more.
    private static let confirmationTimeout = Duration.seconds(12)
    /// The time that all phones have to tell which ports are open.
    private static let listTimeout = Duration.seconds(2)
    /// The time that all phones have to close their ports at the end.
    private static let closeTimeout = Duration.seconds(1)
    /// The pause between two comparisons with an attached phone on which a tunnel is open.
    private static let comparisonInterval = Duration.seconds(30)
    private static let opening = Tunnel.State.waiting(reason: "the phone is being asked")

    /// The local port of each tunnel.
    private var wanted: [UDID: [UInt16: UInt16]] = [:]
    private var phones: [UDID: Phone] = [:]
    /// The number of changes of what is wanted and attached.
    private var generation: UInt64 = 0
    private nonisolated let changes = Broadcast<Void>(slow: .keepsNewest(1))
    private nonisolated let monitor: ADBDeviceMonitor?
    private nonisolated let clock = ContinuousClock()
    private let file: StateFile<[Record]>
    private let logger: Logger

    /// Loads the saved tunnels.
    ///
    /// - Parameters:
    ///   - monitor: Knows the phones; nil if adb is turned off.
    ///   - file: Persists the tunnels.
    ///   - logger: The logger.
    /// - Throws: `StateError.notRead`.
    package init(of monitor: ADBDeviceMonitor?, file: StateFile<[Record]>, logger: Logger) async throws(StateError) {
        (self.monitor, self.file, self.logger) = (monitor, file, logger)
        for record in try await file.read()?.prefix(Self.limit) ?? [] {
            wanted[record.udid, default: [:]][record.phonePort] = record.localPort
        }
    }

    /// Returns all tunnels, sorted by phone and port.
    ///
    /// Compares them with the attached phones, because another program may have closed a port. Waits up to 2 s.
    package func list() async -> [ReverseTunnel] {
        announce()
        let now = generation
        await wait(atMost: Self.listTimeout) { await self.isCompared(since: now) }
        return records(of: wanted).map { record in
            ReverseTunnel(
                udid: record.udid,
                phonePort: record.phonePort,
                localPort: record.localPort,
                state: state(of: record)
            )
        }
    }

    /// Opens a tunnel, also in place of one at the same port of the phone. It is on disk before this function returns.
    ///
    /// Waits for the answer of an attached phone.
    ///
    /// - Throws: `Problem` for an iPhone, a port 0, too many tunnels, or a tunnel that cannot be saved.
    package func open(_ port: UInt16, of udid: UDID, to localPort: UInt16) async throws -> ReverseTunnel {
        if let problem = Self.problem(with: udid, port, localPort) { throw problem }
        let isNew = wanted[udid]?[port] == nil
        guard !isNew || wanted.values.reduce(0, { $0 + $1.count }) < Self.limit else {
            throw Problem(.limit, "\(Self.limit) reverse tunnels exist already", hint: "patchbay reverse --list")
        }
        try await want(localPort, at: port, of: udid)
        // Another program may have closed the port, so an open tunnel is opened again.
        phones[udid]?.rules[port]?.state = Self.opening
        announce()
        log("reverse tunnel opened", port, of: udid, to: localPort)
        await wait(atMost: Self.confirmationTimeout) { await self.isSettled(port, of: udid) }
        let record = Record(udid: udid, phonePort: port, localPort: localPort)
        return ReverseTunnel(udid: udid, phonePort: port, localPort: localPort, state: state(of: record))
    }

    /// Removes a tunnel. When it returns, the phone accepts no further connection at the port.
    ///
    /// - Throws: `Problem` without such a tunnel, if the change cannot be saved, or if the phone does not confirm it.
    package func remove(_ port: UInt16, of udid: UDID) async throws {
        guard let localPort = wanted[udid]?[port] else {
            throw Problem(
                .notFound,
                "no reverse tunnel begins at port \(port) of \(udid)",
                hint: "patchbay reverse --list"
            )
        }
        try await want(nil, at: port, of: udid)
        announce()
        log("reverse tunnel removed", port, of: udid, to: localPort)
        await wait(atMost: Self.confirmationTimeout) { await self.isClosed(port, of: udid) }
        guard isClosed(port, of: udid) else {
            throw Problem(
                .unavailable,
                "the reverse tunnel is removed, but the phone did not confirm that port \(port) is closed",
                hint: "unplug the phone, which closes the port"
            )
        }
    }

    /// Keeps the tunnels open on attached phones until graceful shutdown or cancellation. Each phone has its own task.
    package func run() async throws {
        guard let monitor else {
            try? await gracefulShutdown()
            return
        }
        await cancelWhenGracefulShutdown { [self] in
            await withDiscardingTaskGroup { group in
                for await attached in await monitor.reachablePhones() {
                    for phone in await attach(attached) { group.addTask { await self.keep(phone, monitor) } }
                }
                group.cancelAll()
            }
        }
        await closeAll(monitor)
    }
}

/// The list of tunnels.
extension ReverseTunnelTable {
    private static func problem(with udid: UDID, _ port: UInt16, _ localPort: UInt16) -> Problem? {
        guard udid.platform == .android else {
            let reason = "usbmuxd connects to ports of an iPhone only, so no port of \(udid) can lead to this machine"
            return Problem(.badRequest, reason, hint: "let the app use this machine's address on the network")
        }
        return port > 0 && localPort > 0 ? nil : Problem(.badRequest, "a port is a number from 1 to 65535")
    }

    private func records(of tunnels: [UDID: [UInt16: UInt16]]) -> [Record] {
        tunnels.sorted { $0.key < $1.key }.flatMap { udid, ports in
            ports.sorted { $0.key < $1.key }.map { Record(udid: udid, phonePort: $0.key, localPort: $0.value) }
        }
    }

    private func state(of record: Record) -> Tunnel.State {
        guard monitor != nil else { return .waiting(reason: "adb is turned off (devices.adb)") }
        guard let phone = phones[record.udid], phone.attachment != nil else {
            return .waiting(reason: "the phone is not attached, or accepts no requests: see `patchbay devices`")
        }
        guard let rule = phone.rules[record.phonePort], rule.localPort == record.localPort else { return Self.opening }
        guard rule.state == .active, monitor?.address.isLocal == true, Self.isUnused(record.localPort) else {
            return rule.state
        }
        return .waiting(reason: "nothing listens on port \(record.localPort) of this machine; start the server there")
    }

    /// True if a connection of the adb server to a port of the loopback would be refused.
    private static func isUnused(_ port: UInt16) -> Bool {
        let addresses = [SocketAddress.ipv4(INADDR_LOOPBACK, port: port), .ipv6(1, port: port, scope: 0)]
        return addresses.allSatisfy { (try? SocketOwnerLookup().isListening(on: $0)) == false }
    }

    /// Changes and saves what is wanted at a port. A change that is not saved is undone.
    private func want(_ localPort: UInt16?, at port: UInt16, of udid: UDID) async throws {
        let before = wanted[udid]?[port]
        guard before != localPort else { return }
        wanted[udid, default: [:]][port] = localPort
        if wanted[udid]?.isEmpty == true { wanted[udid] = nil }
        do {
            try await file.write(records(of: wanted))
        } catch {
            wanted[udid, default: [:]][port] = before
            throw Problem(.unavailable, "the reverse tunnel was not saved: \(error)", hint: "patchbay doctor")
        }
    }

    private func log(_ message: Logger.Message, _ port: UInt16, of udid: UDID, to localPort: UInt16) {
        logger.info(
            message,
            metadata: ["phone": "\(udid)", "phone port": "\(port)", "local port": "\(localPort)"]
        )
    }
}

/// The tunnels on phones.
extension ReverseTunnelTable {
    /// Returns the new attachments.
    private func attach(_ attached: Set<ADBReachablePhone>) -> [ADBReachablePhone] {
        for udid in phones.keys where !attached.contains(where: { $0 == phones[udid]?.attachment }) {
            phones[udid]?.attachment = nil
        }
        let new = attached.filter { phones[$0.udid]?.attachment == nil }
        for phone in new {
            phones[phone.udid, default: Phone()].attachment = phone
            for port in phones[phone.udid]?.rules.keys ?? [:].keys {
                phones[phone.udid]?.rules[port]?.state = Self.opening
            }
        }
        announce()
        return Array(new)
    }

    private func announce() {
        generation += 1
        changes.send(())
    }

    /// Keeps the tunnels of a phone open during one attachment. What fails is tried again, with pauses.
    private nonisolated func keep(_ phone: ADBReachablePhone, _ monitor: ADBDeviceMonitor) async {
        var backoff = Backoff(from: .seconds(1), to: .seconds(60))
        while !Task.isCancelled, await isAttached(phone) {
            let before = await generation
            let isDone = await update(phone, monitor)
            if isDone { backoff.reset() }
            let hasOpenPorts = await finish(before, of: phone)
            let pause = isDone ? hasOpenPorts ? Self.comparisonInterval : nil : backoff.next()
            await wait(atMost: pause) { await self.generation != before }
        }
    }

    private func isAttached(_ phone: ADBReachablePhone) -> Bool { phones[phone.udid]?.attachment == phone }

    /// Notes that the phone was compared. Returns true if it has open ports.
    private func finish(_ generation: UInt64, of phone: ADBReachablePhone) -> Bool {
        guard isAttached(phone) else { return false }
        phones[phone.udid]?.compared = generation
        changes.send(())
        return phones[phone.udid]?.rules.isEmpty == false
    }

    private func isCompared(since generation: UInt64) -> Bool {
        phones.values.allSatisfy { $0.attachment == nil || $0.compared >= generation }
    }

    /// Opens and closes what differs from what is wanted. Returns false if a request failed.
    private func update(_ phone: ADBReachablePhone, _ monitor: ADBDeviceMonitor) async -> Bool {
        let udid = phone.udid
        var isDone = await compare(phone, monitor)
        for port in phones[udid]?.rules.keys.sorted() ?? [] where wanted[udid]?[port] == nil {
            let isClosed = await close(port, of: phone, monitor)
            isDone = isDone && isClosed
        }
        for (port, localPort) in wanted[udid] ?? [:] {
            let rule = phones[udid]?.rules[port]
            guard rule?.state != .active || rule?.localPort != localPort else { continue }
            let isOpen = await open(port, to: localPort, of: phone, monitor)
            isDone = isDone && isOpen
        }
        return isDone
    }

    /// Finds the open tunnels that another program has closed or changed. Returns false if the phone did not answer.
    private func compare(_ phone: ADBReachablePhone, _ monitor: ADBDeviceMonitor) async -> Bool {
        let udid = phone.udid
        guard phones[udid]?.rules.values.contains(where: { $0.state == .active }) == true else { return true }
        let compared = phones[udid]?.rules ?? [:]
        guard let open = try? await monitor.reversePorts(of: udid).localPorts else { return false }
        guard isAttached(phone) else { return true }
        for (port, rule) in compared where rule.state == .active && open[port] != rule.localPort {
            guard wanted[udid]?[port] == rule.localPort else { continue }
            phones[udid]?.rules[port]?.state = Self.opening
            log("another program has closed or changed a reverse tunnel", port, of: udid, to: rule.localPort)
        }
        return true
    }

    private func open(
        _ port: UInt16,
        to localPort: UInt16,
        of phone: ADBReachablePhone,
        _ monitor: ADBDeviceMonitor
    ) async -> Bool {
        // The tunnel may have been changed or removed during an earlier request.
        guard isAttached(phone), wanted[phone.udid]?[port] == localPort else { return true }
        let before = phones[phone.udid]?.rules[port]?.state
        phones[phone.udid]?.rules[port] = Rule(localPort: localPort, state: before ?? Self.opening)
        var state = Tunnel.State.active
        do { try await monitor.openReverse(port, to: localPort, of: phone.udid) } catch {
            state = Self.state(after: error)
        }
        guard isAttached(phone) else { return true }
        if state != before, let reason = state.reason {
            logger.info(
                "a reverse tunnel cannot be opened",
                metadata: ["phone": "\(phone.udid)", "phone port": "\(port)", "reason": "\(reason)"]
            )
        }
        phones[phone.udid]?.rules[port] = Rule(localPort: localPort, state: state)
        changes.send(())
        return state == .active
    }

    private func close(_ port: UInt16, of phone: ADBReachablePhone, _ monitor: ADBDeviceMonitor) async -> Bool {
        guard isAttached(phone), wanted[phone.udid]?[port] == nil else { return true }
        guard (try? await monitor.closeReverse(port, of: phone.udid)) != nil else { return false }
        guard isAttached(phone) else { return true }
        phones[phone.udid]?.rules[port] = nil
        changes.send(())
        return true
    }

    /// Closes all ports of attached phones, so that a broker that has stopped leaves none open.
    private nonisolated func closeAll(_ monitor: ADBDeviceMonitor) async {
        let ports = await phones.filter { $0.value.attachment != nil }.mapValues { Array($0.rules.keys) }
        _ = try? await withTimeout(Self.closeTimeout, clock: clock) {
            await withDiscardingTaskGroup { group in
                for (udid, ports) in ports {
                    group.addTask { for port in ports { try? await monitor.closeReverse(port, of: udid) } }
                }
            }
        }
    }

    private static func state(after error: any Error) -> Tunnel.State {
        switch error {
        case ADBError.refused(let reason, _): .failed(reason: "the phone refuses the port: \(reason)")
        default: .waiting(reason: "\(error)")
        }
    }

    /// True if an attached phone has answered.
    private func isSettled(_ port: UInt16, of udid: UDID) -> Bool {
        guard let phone = phones[udid], phone.attachment != nil else { return true }
        guard let rule = phone.rules[port] else { return wanted[udid]?[port] == nil }
        return rule.localPort == wanted[udid]?[port] && rule.state != Self.opening
    }

    private func isClosed(_ port: UInt16, of udid: UDID) -> Bool {
        phones[udid]?.attachment == nil || phones[udid]?.rules[port] == nil
    }

    /// Waits until a condition holds, or the time is over.
    private nonisolated func wait(
        atMost pause: Duration?,
        until holds: @escaping @Sendable () async -> Bool
    ) async {
        let changes = changes.subscribe(startingWith: ())
        let wait: @Sendable () async -> Void = { for await _ in changes where await holds() { return } }
        guard let pause else { return await wait() }
        _ = try? await withTimeout(pause, clock: clock) { await wait() }
    }
}
