import Model

/// What all clients of the facade share: the phones with their numbers, and who listens.
actor DeviceEventHub {
    /// A listener's place: everything that was there when it took it, and every change since.
    struct Seat: Sendable {
        let phones: [NumberedDevice]
        /// Ends when the listener let `newsLimit` changes wait, which it is not served after.
        let news: AsyncStream<DeviceChange>
    }

    /// How many changes may wait for a listener: more than a hand at the cable can make while a program is scheduled.
    static let newsLimit = 256

    private(set) var view = UsbmuxServerSnapshot()
    private var listeners: [UInt32: AsyncStream<DeviceChange>.Continuation] = [:]

    /// Takes in which phones are there now, and tells those who listen.
    func show(_ devices: [Device]) {
        for change in view.phones.update(devices) {
            for (number, listener) in listeners {
                if case .enqueued = listener.yield(change) { continue }
                leave(number)
            }
        }
    }

    func listen(_ number: UInt32, as program: ListenerInfo) -> Seat {
        let (news, teller) = AsyncStream.makeStream(
            of: DeviceChange.self,
            bufferingPolicy: .bufferingOldest(Self.newsLimit)
        )
        listeners[number] = teller
        view.listeners[number] = program
        return Seat(phones: view.phones.phones, news: news)
    }

    func leave(_ number: UInt32) {
        listeners.removeValue(forKey: number)?.finish()
        view.listeners[number] = nil
    }
}
