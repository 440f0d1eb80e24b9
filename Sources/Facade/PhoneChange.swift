/// What happened at the cable, for whoever listens.
enum PhoneChange: Hashable, Sendable {
    case attached(ListedPhone)
    case detached(ListedPhone)
}
