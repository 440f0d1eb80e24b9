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

/// Gives phones their numbers.
///
/// As in usbmuxd, a phone has a new number each time it is plugged in, and no number is ever given again: clients keep
/// numbers, and an old one must not lead to another phone. Unlike there, this also holds across restarts of usbmuxd.
struct DeviceIDAllocator: Hashable, Sendable {
    /// By number.
    private(set) var phones: [NumberedDevice] = []
    private var last: UInt32 = 0

    /// Takes in which phones are there now.
    ///
    /// Only those on the cable are listed. libusbmuxd wants the network address of a network device, which Patchbay does
    /// not know, and takes a record without one for a broken usbmuxd that has lost all its phones.
    /// - Returns: What changed, farewells first.
    mutating func update(_ devices: [Device]) -> [DeviceChange] {
        let cabled = devices.filter { $0.transport == .usb }
        // A phone that was replugged differs in its time.
        let gone = phones.filter { !cabled.contains($0.device) }
        let known = Set(phones.map(\.device))
        phones.removeAll { gone.contains($0) }
        let new = cabled.filter { !known.contains($0) }.map { device in
            last += 1
            return NumberedDevice(deviceID: last, device: device)
        }
        phones += new
        return gone.map(DeviceChange.detached) + new.map(DeviceChange.attached)
    }

    func phone(_ deviceID: UInt32) -> NumberedDevice? { phones.first { $0.deviceID == deviceID } }
}

/// What happened at the cable, for whoever listens.
enum DeviceChange: Hashable, Sendable {
    case attached(NumberedDevice)
    case detached(NumberedDevice)
}

/// A phone under the number that the facade's clients know it by.
struct NumberedDevice: Hashable, Sendable {
    /// Ours, not usbmuxd's; never 0, which is the end of a list in libusbmuxd.
    let deviceID: UInt32
    let device: Device
}

/// What a program says about itself when it listens, for `ListListeners`.
struct ListenerInfo: Hashable, Sendable {
    let name: String
    let bundleID: String?
    let libraryVersion: Int
}

/// What a request is answered from: how things are at one moment.
struct UsbmuxServerSnapshot: Hashable, Sendable {
    var phones = DeviceIDAllocator()
    /// Who listens, by the number of the client.
    var listeners: [UInt32: ListenerInfo] = [:]
}
