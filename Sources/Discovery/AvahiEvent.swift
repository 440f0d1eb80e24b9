import Model

/// What a callback of libavahi-client told, copied out of C memory.
enum AvahiEvent: Sendable {
    /// How a browser's world changed.
    enum Change: Hashable, Sendable {
        case appeared
        case disappeared
        case allForNow
        case failed(CInt)
    }

    enum Server: Hashable, Sendable {
        case connecting
        case registering
        case running
        case failed(CInt)
    }

    enum Group: Hashable, Sendable {
        case established
        case collided
        case failed(CInt)
    }

    case client(Server)
    /// The key is nil when the change is about the browser itself.
    case service(Change, ServiceKey?, isOurOwn: Bool)
    case record(Change, interface: CInt, transport: CInt, data: [UInt8])
    case resolved(ResolvedService)
    case unresolved(CInt)
    case group(Group)
}
