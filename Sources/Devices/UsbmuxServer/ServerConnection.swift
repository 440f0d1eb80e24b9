import Glibc
import Logging
import Model
import SystemIO
import Tunnels

/// One accepted client, until it disconnects or becomes a relayed stream.
struct UsbmuxServerConnection: Sendable {
    let number: UInt32
    let eventHub: DeviceEventHub
    let dialer: any Dialer
    let usbmuxd: any UsbmuxForwarder
    let relay: Relay
    let policy: (any ConnectionPolicy)?
    let statistics: UsbmuxServerStatistics
    let logger: Logger

    /// Serves the client until it disconnects or its stream is handed to the relay. Returns early when cancelled.
    func serve(_ socket: consuming Descriptor) async {
        do {
            let pendingDial = try await handleRequests(over: socket.number)
            guard let connection = pendingDial?.take() else { return }
            statistics.beginStream()
            relay.adopt(client: socket, target: connection, observer: statistics)
        } catch ByteStream.Failure.closed {
            // The usual end.
        } catch {
            logger.debug("a usbmuxd client disconnected", metadata: ["client": "\(number)", "reason": "\(error)"])
        }
    }

    /// Handles the client's requests.
    ///
    /// - Returns: The dial that the client was told succeeded; nil when the connection ends.
    private func handleRequests(over socket: CInt) async throws -> PendingDial? {
        let stream = ByteStream(over: socket, to: "a usbmuxd client")
        var session = UsbmuxServerSession()
        while true {
            switch try session.nextAction(in: await eventHub.snapshot) {
            case nil:
                // At most 16 KiB at a time, so that memory grows only with received data.
                session.append(try await stream.receive(atMost: min(session.bytesNeeded, 16 << 10)))
            case .send(let bytes): try await stream.send(bytes)
            case .dial(let device, let port):
                let pendingDial = PendingDial()
                let udid = device.device.udid
                let failure = await pendingDial.dial(for: socket) { [dialer, policy] () async throws -> Connection in
                    let route = USBRoute(udid: udid, port: port)
                    let user = SocketOption.peerUser(of: socket)
                    if let refusal = await policy?.check(of: .device(route), for: nil, owner: user)() { throw refusal }
                    return try await dialer.dial(.usb(route))
                }
                guard failure != nil || pendingDial.isFilled else { return nil }
                try await stream.send(session.connectCompleted(failure))
                guard let failure else { return pendingDial }
                logger.debug("a dial failed", metadata: ["client": "\(number)", "reason": "\(failure)"])
            case .forward(let propertyList, let name):
                let reply = await forward(propertyList, for: name)
                try await stream.send(session.upstreamReplied(reply))
            case .listen(let program):
                let subscription = await eventHub.subscribe(number, as: program)
                do {
                    try await stream.send(session.listenResponse(subscription.devices))
                    try await streamEvents(subscription.changes, to: socket, encodedBy: session)
                } catch {
                    await eventHub.unsubscribe(number)
                    throw error
                }
                await eventHub.unsubscribe(number)
                return nil
            case .close: return nil
            }
        }
    }

    private func forward(_ propertyList: [UInt8], for name: String) async -> UsbmuxMessage.Body? {
        let name = SanitizedText(name).text
        do {
            return try await usbmuxd.forward(propertyList, for: name)
        } catch {
            logger.debug(
                "a request was not forwarded to usbmuxd",
                metadata: ["request": "\(name)", "reason": "\(error)"]
            )
            return nil
        }
    }

    /// Sends device events until the client sends anything or stops reading.
    ///
    /// usbmuxd also closes a listening socket that receives a command. Events are sent without waiting. A client with a
    /// full socket has left about a hundred of them unread, and is disconnected.
    private func streamEvents(
        _ changes: AsyncStream<DeviceChange>,
        to socket: CInt,
        encodedBy session: UsbmuxServerSession
    ) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await Poller.shared.wait(for: .readable, of: socket) }
            group.addTask {
                for await change in changes {
                    let bytes = try session.deviceEvent(change)
                    guard Glibc.send(socket, bytes, bytes.count, CInt(MSG_NOSIGNAL)) == bytes.count else { return }
                }
            }
            defer { group.cancelAll() }
            try await group.next()
        }
    }
}
