import Devices
import Glibc
import Logging
import Model
import SystemIO
import Tunnels

/// One client of the facade, from accept to its end or to its stream.
struct UsbmuxServerConnection: Sendable {
    let number: UInt32
    let switchboard: DeviceEventHub
    let dialer: any Dialer
    let usbmuxd: NativeUsbmuxClient
    let relay: Relay
    let tally: UsbmuxServerStatistics
    let logger: Logger

    /// Serves until the client ends, or has become a stream in the relay's hands; ends early when cancelled.
    func serve(_ socket: consuming Descriptor) async {
        do {
            let slot = try await converse(over: socket.number)
            guard let carrier = slot?.take() else { return }
            tally.begin()
            relay.adopt(client: socket, carrier: carrier, observer: tally)
        } catch {
            logger.debug("a client of the facade ended", metadata: ["client": "\(number)", "reason": "\(error)"])
        }
    }

    /// - Returns: The carrier that the client has been told about; nil when there is no more to say.
    private func converse(over socket: CInt) async throws -> PendingDial? {
        var session = UsbmuxServerSession()
        while true {
            switch try session.step(seeing: await switchboard.view) {
            case nil:
                let bytes = try await receive(upTo: session.missing, from: socket)
                if bytes.isEmpty { return nil }
                session.append(bytes)
            case .send(let bytes): try await send(bytes, to: socket)
            case .dial(let phone, let port):
                let slot = PendingDial()
                let route = Route.usb(USBRoute(udid: phone.device.udid, port: port))
                let failure = await slot.fill(for: socket) { [dialer] () async throws -> Connection in
                    try await dialer.dial(route)
                }
                guard failure != nil || slot.isFilled else { return nil }
                try await send(session.dialled(failure), to: socket)
                guard let failure else { return slot }
                logger.debug("a dial failed", metadata: ["client": "\(number)", "reason": "\(failure)"])
            case .ask(let propertyList, let name):
                try await send(session.answered(await ask(propertyList, name)), to: socket)
            case .listen(let program):
                let seat = await switchboard.listen(number, as: program)
                do {
                    try await send(session.welcome(seat.phones), to: socket)
                    try await inform(socket, of: seat.news, session)
                } catch {
                    await switchboard.leave(number)
                    throw error
                }
                await switchboard.leave(number)
                return nil
            case .close: return nil
            }
        }
    }

    private func ask(_ propertyList: [UInt8], _ name: String) async -> UsbmuxMessage.Body? {
        let name = SanitizedText(name).text
        do {
            return try await usbmuxd.pass(propertyList, for: name)
        } catch {
            logger.debug("a request was not passed on", metadata: ["request": "\(name)", "reason": "\(error)"])
            return nil
        }
    }

    /// Tells what changes, until the client says anything or does not listen.
    ///
    /// A command on a listening socket ends it in usbmuxd too. News are sent without waiting: a client with a full socket
    /// has left some hundred of them unread, and it can only be let go.
    private func inform(_ socket: CInt, of news: AsyncStream<DeviceChange>, _ session: UsbmuxServerSession) async throws
    {
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await Poller.shared.wait(for: .readable, of: socket) }
            group.addTask {
                for await change in news {
                    let bytes = try session.news(change)
                    guard Glibc.send(socket, bytes, bytes.count, CInt(MSG_NOSIGNAL)) == bytes.count else { return }
                }
            }
            defer { group.cancelAll() }
            try await group.next()
        }
    }

    /// - Returns: At least one byte; none at the client's end.
    private func receive(upTo room: Int, from socket: CInt) async throws -> [UInt8] {
        // In pieces, so that memory grows only with what really comes.
        let room = min(room, 16 << 10)
        while true {
            var failure: CInt = 0
            let bytes = [UInt8](unsafeUninitializedCapacity: room) { buffer, count in
                let received = recv(socket, buffer.baseAddress, room, 0)
                count = max(0, received)
                if received < 0 { failure = errno }
            }
            switch failure {
            case 0, ECONNRESET: return bytes
            case EAGAIN: try await Poller.shared.wait(for: .readable, of: socket)
            case EINTR: continue
            default: throw SocketError.failed(call: "recv", on: "a client of the facade", code: failure)
            }
        }
    }

    private func send(_ bytes: [UInt8], to socket: CInt) async throws {
        var rest = bytes[...]
        while !rest.isEmpty {
            let sent = rest.withUnsafeBytes { Glibc.send(socket, $0.baseAddress, $0.count, CInt(MSG_NOSIGNAL)) }
            if sent >= 0 {
                rest = rest.dropFirst(sent)
                continue
            }
            switch errno {
            case EAGAIN: try await Poller.shared.wait(for: .writable, of: socket)
            case EINTR: continue
            case let code: throw SocketError.failed(call: "send", on: "a client of the facade", code: code)
            }
        }
    }
}
