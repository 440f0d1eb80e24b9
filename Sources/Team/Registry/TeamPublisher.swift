import Logging
package import Model
import ServiceLifecycle
import Synchronization
import SystemIO

/// Publishes the endpoints and phones of this host in the registry of the team.
///
/// A change is written at once, together with the changes that arrive during a running write. Nothing is written
/// without a change. A new session lease writes everything again.
package final class TeamPublisher: Service {
    private struct State {
        var table = PublicationTable()
        var host: TeamHost?
        var isListed = false
    }

    private let state = Mutex(State())
    private let host: HostName
    private let session: TeamSession
    private let wakes: AsyncStream<Void>
    private let wake: AsyncStream<Void>.Continuation

    /// - Parameters:
    ///   - host: The name of this host.
    ///   - session: The session of the entries, in the team registry that gets them.
    package init(host: HostName, session: TeamSession) {
        self.host = host
        self.session = session
        (wakes, wake) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    }

    /// Sets the facts of this host. Its `generation` is that of the session.
    ///
    /// Nothing is published before this call and `setEntries`.
    package func setHost(_ host: TeamHost) {
        state.withLock { state in
            state.host = host
            if let generation = state.table.sessionLease?.generation { setHost(host, generation, in: &state) }
        }
        wake.yield()
    }

    /// Sets all endpoints and phones of this host. Those of other hosts are ignored.
    ///
    /// The first call also ends the entries of an earlier process of this host, so it needs the restored endpoints.
    package func setEntries(endpoints: [Endpoint], devices: [Device]) {
        var values: [String: [UInt8]] = [:]
        for endpoint in endpoints where !endpoint.isOnOtherHost {
            let key = TeamKey.endpoint(endpoint.id, on: host)
            values[key.text] = value(of: endpoint, for: key)
        }
        for device in devices {
            let key = TeamKey.device(device.udid, device.transport, on: host)
            values[key.text] = value(of: device, for: key)
        }
        state.withLock { state in
            state.isListed = true
            let hostKey = TeamKey.host(host).text
            for key in Array(state.table.keys) where values[key] == nil && key != hostKey {
                state.table.set(key, to: nil)
            }
            for (key, value) in values.sorted(by: { $0.key < $1.key }) { state.table.set(key, to: value) }
        }
        wake.yield()
    }

    /// Publishes a new or changed endpoint. An endpoint of another host is ignored.
    package func put(_ endpoint: Endpoint) {
        guard !endpoint.isOnOtherHost else { return }
        let key = TeamKey.endpoint(endpoint.id, on: host)
        set(key, to: value(of: endpoint, for: key))
    }

    /// Deletes the entry of an endpoint.
    package func remove(_ endpoint: EndpointID) {
        guard endpoint.host == nil || endpoint.host == host else { return }
        set(.endpoint(endpoint, on: host), to: nil)
    }

    /// Publishes a new or changed phone.
    package func put(_ device: Device) {
        let key = TeamKey.device(device.udid, device.transport, on: host)
        set(key, to: value(of: device, for: key))
    }

    /// Deletes the entry of a phone.
    package func remove(_ udid: UDID, _ transport: Device.Transport) {
        set(.device(udid, transport, on: host), to: nil)
    }

    /// Writes changes until the service group shuts down. The session then deletes the entries.
    package func run() async throws {
        await cancelWhenGracefulShutdown { [self] in
            await withTaskGroup(of: Void.self) { group in
                group.addTask { for await _ in self.session.changes() { self.wake.yield() } }
                group.addTask { for await _ in self.wakes { await self.publish() } }
                await group.waitForAll()
            }
        }
    }

    /// Writes until the team registry has everything, or until there is no session lease.
    private func publish() async {
        var backoff = Backoff(from: .milliseconds(100), to: .seconds(2))
        var isFailing = false
        while !Task.isCancelled, let sessionLease = session.currentLease {
            do throws(TeamStoreError) {
                guard try await begin(with: sessionLease), try await writeNext() else { return }
                backoff.reset()
                isFailing = false
            } catch .sessionLeaseEnded {
                session.reportEnd(of: sessionLease)
                return
            } catch {
                if Task.isCancelled { return }
                if !isFailing {
                    session.logger.warning(
                        "cannot publish to the registry of the team",
                        metadata: ["reason": "\(error)"]
                    )
                }
                isFailing = true
                try? await backoff.wait(clock: session.clock)
            }
        }
    }

    /// Begins the publication with a new session lease. Returns false if the facts of this host are not known yet.
    private func begin(with sessionLease: SessionLease) async throws(TeamStoreError) -> Bool {
        let (isReady, isBegun) = state.withLock {
            ($0.isListed && $0.host != nil, $0.table.sessionLease == sessionLease)
        }
        guard isReady, !isBegun else { return isReady }
        let keys =
            try await session.store.list(TeamKey.endpoints(of: host)).entries.map(\.key)
            + session.store.list(TeamKey.devices(of: host)).entries.map(\.key)
        state.withLock { state in
            if let host = state.host { setHost(host, sessionLease.generation, in: &state) }
            state.table.begin(with: sessionLease, existing: keys)
        }
        return true
    }

    /// Makes the next writes. Returns false if there are none.
    private func writeNext() async throws(TeamStoreError) -> Bool {
        guard let writes = state.withLock({ $0.table.nextWrites() }) else { return false }
        do throws(TeamStoreError) {
            _ = try await session.store.write(writes, if: nil)
            state.withLock { $0.table.acknowledge(writes) }
            return true
        } catch {
            state.withLock { $0.table.fail(writes) }
            throw error
        }
    }

    private func set(_ key: TeamKey, to value: [UInt8]?) {
        state.withLock { $0.table.set(key.text, to: value) }
        wake.yield()
    }

    private func setHost(_ host: TeamHost, _ generation: UInt64, in state: inout State) {
        let key = TeamKey.host(self.host)
        let published = TeamHost(
            name: self.host,
            version: host.version,
            addresses: host.addresses,
            since: host.since,
            generation: generation
        )
        state.table.set(key.text, to: encoded { () throws(TeamError) in try published.bytes(for: key) })
    }

    private func value(of endpoint: Endpoint, for key: TeamKey) -> [UInt8]? {
        encoded { () throws(TeamError) in try TeamEndpoint(endpoint).bytes(for: key) }
    }

    private func value(of device: Device, for key: TeamKey) -> [UInt8]? {
        var device = device
        device.routes = nil
        return encoded { () throws(TeamError) in try TeamCoding.bytes(of: device, for: key) }
    }

    /// Returns a value; nil after an error, which is logged.
    private func encoded(_ encode: () throws(TeamError) -> [UInt8]) -> [UInt8]? {
        do {
            return try encode()
        } catch {
            session.logger.error("cannot publish an entry", metadata: ["reason": "\(error)"])
            return nil
        }
    }
}
