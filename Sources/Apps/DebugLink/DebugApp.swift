package import FoundationEssentials
package import Model
package import SystemIO

/// One connection of an app to the state debugger. The protocol has no name of the app.
package struct DebugApp: Identifiable, Hashable, Sendable {
    /// The number of the connection. Numbers begin at 1 and are never reused while the broker runs.
    package let id: Int
    package let peer: SocketAddress
    /// The number of the app among the connected apps of its machine; nil before its first message. A new app gets the
    /// lowest free number, so an app that is launched again keeps its place.
    package internal(set) var place: Int?
    package let connectedAt: Date
    /// False after the app has disconnected. Its states stay readable for a while.
    package internal(set) var isConnected = true
    /// The reason for the end of the connection; nil while it stands, and after a normal end.
    package internal(set) var failure: String?
    /// The reason why the app's current frame does not end; nil while bytes arrive.
    package internal(set) var stall: String?
    /// Indicates whether another debugger gets the app's frames now.
    package internal(set) var isForwarded = false
    /// The framing that the app uses; nil before its first message.
    package internal(set) var framing: DebugFraming?
    /// The number of the app's newest state, 0 before the first one.
    package internal(set) var lastState = 0
    /// The memory that the held states and pictures need in bytes.
    package internal(set) var heldBytes = 0
    /// The number of pictures that were dropped to save memory, before their states.
    package internal(set) var droppedPictures = 0
    /// The number of states that were dropped because of their number or to save memory.
    package internal(set) var droppedStates = 0

    package init(id: Int, peer: SocketAddress, place: Int? = nil, connectedAt: Date) {
        (self.id, self.peer, self.place, self.connectedAt) = (id, peer, place, connectedAt)
    }
}

extension DebugApp {
    /// The route of the app's connection. The route is never dialled, and its machine makes it need an approval.
    package var route: NetworkRoute {
        let parts = peer.host.split(separator: "%", maxSplits: 1).map(String.init)
        let scope: UInt32 = if case .ipv6(_, _, let scope) = peer { scope } else { 0 }
        return NetworkRoute(
            address: parts[0],
            port: peer.port ?? 0,
            interface: parts.count > 1 ? parts[1] : nil,
            interfaceIndex: scope,
            machine: SanitizedText(peer.host),
            isInbound: true
        )
    }
}

/// The description of one held state.
package struct DebugStateSummary: Hashable, Sendable {
    package enum Picture: Hashable, Sendable {
        case none
        /// The size of the picture's base64 text in bytes.
        case held(bytes: Int)
        /// The picture was dropped to save memory.
        case dropped
        /// The app sent something else than a PNG or JPEG file in base64. It was not kept.
        case invalid
    }

    /// The number of the state. The first state of an app has number 1.
    package let number: Int
    package let receivedAt: Date
    /// The action that led to the state; nil if the app sent none.
    package let action: SanitizedText?
    /// The size of the state's JSON text in bytes.
    package let bytes: Int
    package let picture: Picture
}

/// A change for subscribers.
package enum DebugLinkChange: Hashable, Sendable {
    case connected(DebugApp)
    /// The app has sent its first message. The change is followed by `received`.
    case identified(DebugApp)
    /// The app has a new state, the one with the number `lastState`.
    case received(DebugApp)
    /// The app stopped in the middle of a frame, or continued.
    case stalled(DebugApp)
    case disconnected(DebugApp)
}

/// The limits of memory and connections.
package struct DebugLinkLimits: Hashable, Sendable {
    /// The maximum number of connected apps. Further ones are disconnected.
    package var apps = 32
    /// The maximum number of disconnected apps with readable states. The oldest ones are forgotten.
    package var disconnectedApps = 8
    /// The maximum number of states for each app. The oldest ones are dropped.
    package var states = 50
    /// The memory for the states and pictures of one app in bytes, 64 MiB.
    package var bytesPerApp = 64 * 1_048_576
    /// The memory for the states and pictures of all apps in bytes, 256 MiB.
    package var bytes = 256 * 1_048_576
    /// The memory for the incomplete frames of all apps in bytes, 256 MiB. The app that exceeds it is disconnected.
    package var incompleteBytes = 256 * 1_048_576
    /// The size limit of the content of one frame in bytes, 64 MiB.
    package var frame = DebugFrameDecoder.contentLimit
    /// The time without a byte in the middle of a frame after which the app is reported, 30 s.
    package var frameIdle = Duration.seconds(30)

    package init() {}
}
