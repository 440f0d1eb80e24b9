import Glibc
package import Model
package import SystemIO

/// Plans streams to Android phones, by UDID and through an adb server.
///
/// A stream is opened by the number of a transport. It is used only if the phone has not left the transport since its
/// serial was read, because another phone may then have the number.
package struct ADBPlanner: ConnectPlanner {
    /// The maximum number of attempts for one stream. Nothing was sent to the app before a further one.
    private static let attempts = 4
    /// The reason with which the server refuses a port or a name on which nothing listens.
    private static let closed = SanitizedText("closed")

    private let source: any ADBTransportSource
    /// The limit of open streams through the server, of which each phone has a share.
    private let connectionLimit: FairLimiter<UDID>
    private let timeout: Duration

    /// - Parameters:
    ///   - source: Knows the phones.
    ///   - connectionLimit: The limit of open streams. The server hangs if it runs out of descriptors, and each stream
    ///     needs one.
    ///   - timeout: The maximum time for a connect. The server has none, so a frozen phone never answers.
    package init(
        _ source: any ADBTransportSource,
        connectionLimit: FairLimiter<UDID> = FairLimiter(limit: NativeUsbmuxClient.streamLimit),
        timeout: Duration = .seconds(10)
    ) {
        (self.source, self.connectionLimit, self.timeout) = (source, connectionLimit, timeout)
    }

    package func plan(for route: Route) async throws(DialError) -> ConnectPlan {
        guard case .usb(let usb) = route else {
            throw DialError(.noRoute, "\(route) is not a route to a phone; dial it over the network")
        }
        guard usb.socket != .port(0) else {
            throw DialError(.failed, "port 0 is not a valid port; give the port that the app listens on")
        }
        let transport = try await source.transport(of: usb.udid)
        let handshake = ADBHandshake.handshake(
            to: usb.socket,
            over: transport.id,
            isCurrent: transport.isCurrent
        )
        return ConnectPlan(
            route: route,
            method: .socket(transport.server, handshake),
            // The server ends both directions when it reads the end of one.
            halfClose: .destroys,
            linkCheck: transport.linkCheck,
            timeout: timeout,
            limitKey: transport.limitKey,
            acquirePermit: { [connectionLimit] in connectionLimit.permit(usb.udid) },
            listenerCheck: .list { [source] in
                guard await source.isListening(usb.socket, of: usb.udid) == false else { return nil }
                return Self.nothingListens(on: usb.socket, of: transport)
            }
        ) { failure, attempt async throws(DialError) in
            if Self.isRetried(failure), attempt < Self.attempts {
                // A list that arrived meanwhile has to be read first, which takes long on a busy machine.
                if failure == .closed { try? await PollerClock().sleep(for: .milliseconds(10 << (2 * attempt - 2))) }
                return try await plan(for: route)
            }
            throw await reason(failure, at: usb, over: transport)
        }
    }

    /// True unless another attempt would fail for the same reason.
    private static func isRetried(_ failure: ConnectPlan.AttemptFailure) -> Bool {
        switch failure {
        case .closed: true
        case .refused(let reason): reason != closed
        case .system, .rejected, .timedOut, .noPermit, .forbidden: false
        }
    }

    /// Converts a failure to the error that tunnels and probes report.
    private func reason(
        _ failure: ConnectPlan.AttemptFailure,
        at route: USBRoute,
        over transport: ADBTransport
    ) async -> DialError {
        let (phone, socket) = (transport.name, Self.description(of: route.socket))
        switch failure {
        case .refused(Self.closed):
            // A phone that was unplugged meanwhile gives the same answer.
            do throws(DialError) { _ = try await source.transport(of: route.udid) } catch { return error }
            return Self.nothingListens(on: route.socket, of: transport)
        case .refused(let reason):
            return DialError(
                .deviceAbsent,
                "\(phone) cannot be reached: adb says \"\(reason)\"; see `patchbay devices`"
            )
        case .timedOut:
            return DialError(
                .timedOut,
                "\(phone) did not answer on \(socket) in time; unlock it, or unplug it and plug it in again"
            )
        case .noPermit, .forbidden:
            return DialError(
                .limit,
                "\(phone) was not dialed: \(connectionLimit.limit) streams through the adb server are open, which is the "
                    + "limit (devices.max_streams); close some and try again"
            )
        case .closed, .rejected, .system(ENOENT), .system(ECONNREFUSED), .system(ECONNRESET):
            return DialError(
                .deviceAbsent,
                "the adb server stopped while connecting to \(phone); it works again when `adb start-server` has run"
            )
        case .system(let code):
            return DialError(.failed, "\(phone) cannot be reached: \(SocketError.message(for: code))")
        }
    }

    private static func nothingListens(on socket: DeviceSocket, of transport: ADBTransport) -> DialError {
        DialError(
            .refused,
            "nothing listens on \(description(of: socket)) of \(transport.name); start the app, or check the target"
        )
    }

    private static func description(of socket: DeviceSocket) -> String {
        switch socket {
        case .port(let port): "port \(port)"
        case .abstract(let name): "the abstract socket \(name)"
        }
    }
}
