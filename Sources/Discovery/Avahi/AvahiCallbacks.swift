import CAvahi
import Model

/// The C callbacks of libavahi-client. Each one copies C memory into values and reports an event to its context.
///
/// They run on the Avahi thread: during a poll iteration, or inside the call that creates the object.
enum AvahiCallback {
    static func clientChanged(_ client: OpaquePointer?, state: AvahiClientState, userdata: UnsafeMutableRawPointer?) {
        let server: AvahiEvent.Server
        switch state {
        case AVAHI_CLIENT_CONNECTING: server = .connecting
        case AVAHI_CLIENT_S_REGISTERING, AVAHI_CLIENT_S_COLLISION: server = .registering
        case AVAHI_CLIENT_S_RUNNING: server = .running
        // avahi_client_errno is meaningful only in this state. In other states the value is stale.
        case AVAHI_CLIENT_FAILURE: server = .failed(avahi_client_errno(client))
        default: return
        }
        AvahiCallbackContext.report(.client(server), to: userdata)
    }

    static func change(_ event: AvahiBrowserEvent, _ client: @autoclosure () -> OpaquePointer?) -> AvahiEvent.Change? {
        switch event {
        case AVAHI_BROWSER_NEW: .appeared
        case AVAHI_BROWSER_REMOVE: .disappeared
        case AVAHI_BROWSER_ALL_FOR_NOW: .allForNow
        case AVAHI_BROWSER_FAILURE: .failed(avahi_client_errno(client()))
        // CACHE_EXHAUSTED only means that the cache has been read completely.
        default: nil
        }
    }

    static func key(
        interface: AvahiIfIndex,
        transport: AvahiProtocol,
        name: UnsafePointer<CChar>?,
        type: UnsafePointer<CChar>?,
        domain: UnsafePointer<CChar>?
    ) -> ServiceKey? {
        guard let name, let type, let domain else { return nil }
        return ServiceKey(
            interface: interface,
            transport: transport,
            name: Array(String(cString: name).utf8),
            type: String(cString: type),
            domain: String(cString: domain)
        )
    }

    static func address(_ address: UnsafePointer<AvahiAddress>?) -> IPAddress? {
        guard let address else { return nil }
        let size = Int(address.pointee.proto) == Int(AVAHI_PROTO_INET) ? 4 : 16
        return withUnsafeBytes(of: address.pointee.data) { IPAddress(bytes: Array($0.prefix(size))) }
    }
}

/// The userdata of a C object: the engine that receives its events, and the key that identifies the object.
///
/// The connection keeps the context alive for as long as the C object exists.
final class AvahiCallbackContext: Sendable {
    let objectKey: AvahiObjectKey
    private unowned let engine: AvahiEngine

    init(objectKey: AvahiObjectKey, engine: AvahiEngine) {
        self.objectKey = objectKey
        self.engine = engine
    }

    /// Delivers an event to the engine.
    ///
    /// Call this only from a callback. libavahi runs callbacks on the thread that iterates its poll.
    func report(_ event: AvahiEvent) {
        // The executor of the engine is the thread of the callbacks.
        engine.assumeIsolated { $0.receive(event, from: self) }
    }

    static func report(_ event: AvahiEvent, to userdata: UnsafeMutableRawPointer?) {
        guard let userdata else { return }
        Unmanaged<AvahiCallbackContext>.fromOpaque(userdata).takeUnretainedValue().report(event)
    }
}

/// An event reported by a libavahi-client callback, copied out of C memory.
enum AvahiEvent: Sendable {
    /// A change reported by a service or record browser.
    enum Change: Hashable, Sendable {
        case appeared
        case disappeared
        case allForNow
        case failed(CInt)
    }

    /// The state of the client's connection to avahi-daemon.
    enum Server: Hashable, Sendable {
        case connecting
        case registering
        case running
        case failed(CInt)
    }

    /// The state of an entry group.
    enum Group: Hashable, Sendable {
        case established
        case collided
        case failed(CInt)
    }

    case client(Server)
    /// The key is nil when the change concerns the browser as a whole.
    case service(Change, ServiceKey?, isOurOwn: Bool)
    case record(Change, interface: CInt, transport: CInt, data: [UInt8])
    case resolved(ResolvedService)
    case unresolved(CInt)
    case group(Group)

    /// The error code of a failure; nil for other events.
    var errorCode: CInt? {
        switch self {
        case .client(.failed(let code)), .service(.failed(let code), _, _), .record(.failed(let code), _, _, _),
            .unresolved(let code), .group(.failed(let code)):
            code
        default: nil
        }
    }
}
