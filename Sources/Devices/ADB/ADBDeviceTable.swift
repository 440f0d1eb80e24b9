import FoundationEssentials
package import Model

/// The phones of one run of an adb server, merged from its lists and from what the phones report.
///
/// A transport over the network can lead to another phone after an outage, and the outage itself may be in no list. So
/// each list makes the identity of such a phone unknown until its serial was read again.
struct ADBDeviceTable: Sendable {
    typealias Attachment = ADBServerInstance.Attachment

    /// A question to a phone.
    enum Question: Hashable, Sendable {
        case values(Attachment)
        case name(Attachment)
    }

    fileprivate enum Progress {
        case unread
        case read
        /// The phone did not answer, or has no serial.
        case failed
    }

    fileprivate struct Entry {
        var record: ADBDeviceRecord
        var attachment: ADBDeviceTable.Attachment?
        var progress = Progress.unread
        /// The values of the last answer, which may be of an earlier attachment.
        var phone: ADBPhone?
        /// True while the values are read again of a phone that was listed as ready.
        var wasReady = false
        /// The state in a requested list since the last list that the server sent by itself. The server sends none when a
        /// phone over TCP becomes offline, or when it begins to wait for a person's consent.
        var requestedState: ADBState?
        var attachedAt: Date
    }

    private var entries: [ADBTransportID: Entry] = [:]

    /// True if the state of a phone may change without a list from the server.
    var needsRequests: Bool { entries.values.contains { $0.record.state != .ready || !$0.record.namesPhone } }

    /// The transports of phones that have to be asked.
    var unread: [ADBTransportID] { entries.keys.filter { question(of: $0) != nil } }

    /// Applies a list that the server sent by itself.
    mutating func apply(_ list: [(record: ADBDeviceRecord, attachment: Attachment?)], at time: Date) {
        var next: [ADBTransportID: Entry] = [:]
        for (record, attachment) in list {
            var entry = Entry(record: record, attachedAt: time)
            if let known = entries[record.transportID], known.record.serial == record.serial { entry = known }
            if attachment != entry.attachment {
                entry.wasReady = entry.isListedReady && attachment != nil
                if !entry.wasReady { entry.attachedAt = time }
                (entry.attachment, entry.progress) = (attachment, .unread)
            }
            (entry.record, entry.requestedState) = (record, nil)
            next[record.transportID] = entry
        }
        entries = next
    }

    /// Applies a list that was requested. It makes no phone ready: attachments come from the other lists.
    ///
    /// - Returns: True if a phone has changed.
    mutating func apply(requested list: [ADBDeviceRecord]) -> Bool {
        var hasChanged = false
        for record in list {
            guard let entry = entries[record.transportID], entry.record.serial == record.serial else { continue }
            // A phone that is ready in this list alone is reported by the server in a moment.
            let state = record.state == .ready ? nil : record.state
            guard state != entry.requestedState else { continue }
            entries[record.transportID]?.requestedState = state
            hasChanged = true
        }
        return hasChanged
    }

    /// Returns the next question to the phone on a transport; nil for nothing.
    func question(of id: ADBTransportID) -> Question? {
        guard let entry = entries[id], let attachment = entry.attachment else { return nil }
        switch entry.progress {
        case .unread, .failed: return .values(attachment)
        case .read: return entry.phone?.name == nil ? .name(attachment) : nil
        }
    }

    /// Sets the values of a phone; nil if it did not answer. Returns false if the phone has left.
    mutating func set(_ phone: ADBPhone?, of attachment: Attachment, at time: Date) -> Bool {
        guard var entry = entries[attachment.id], entry.attachment == attachment else { return false }
        if let phone {
            let isSame = entry.phone?.udid == phone.udid
            if !isSame, entry.phone != nil { entry.attachedAt = time }
            let name = isSame ? entry.phone?.name : nil
            entry.phone = phone
            entry.phone?.name = name
        }
        entry.progress = phone == nil ? .failed : .read
        entries[attachment.id] = entry
        return true
    }

    /// Sets the name of a phone; nil if it did not answer. Returns false if the phone has left.
    mutating func setName(output: String?, of attachment: Attachment) -> Bool {
        guard entries[attachment.id]?.attachment == attachment else { return false }
        entries[attachment.id]?.phone?.setName(output: output)
        return true
    }

    /// Returns true if the phone may become reachable as soon as a serial was read.
    func isPending(_ udid: UDID) -> Bool {
        entries.values.contains { entry in
            entry.attachment != nil && entry.progress == .unread && !entry.isOffline
                && (entry.phone == nil || entry.phone?.udid == udid)
        }
    }

    /// The attachment by which a phone is reached: on the cable if possible, else the newest one.
    func attachment(of udid: UDID) -> (attachment: Attachment, phone: ADBPhone)? {
        let best = usable.filter { $0.phone?.udid == udid }.max { one, other in
            one.record.isOnCable == other.record.isOnCable
                ? one.record.transportID < other.record.transportID : other.record.isOnCable
        }
        guard let best, let attachment = best.attachment, let phone = best.phone else { return nil }
        return (attachment, phone)
    }

    /// The usable attachments, in the order of their transports. Without those of a second phone with the serial of
    /// another one.
    private var usable: [Entry] {
        var first: [UDID: Entry] = [:]
        return entries.values.filter(\.isUsable).sorted { $0.record.transportID < $1.record.transportID }.filter {
            entry in
            guard let phone = entry.phone else { return true }
            guard let known = first[phone.udid] else {
                first[phone.udid] = entry
                return true
            }
            return known.mayBeSamePhone(as: entry)
        }
    }

    /// The phones that can be reached, each by its best attachment.
    var reachable: Set<ADBReachablePhone> {
        Set(
            Set(usable.compactMap(\.phone?.udid)).compactMap { udid in
                attachment(of: udid).map { .init(udid: udid, release: $0.phone.release, attachment: $0.attachment) }
            }
        )
    }

    /// The serials that two attached phones have. Only the phone that was attached first is used.
    var sharedSerials: Set<UDID> {
        let used = Set(usable.map(\.record.transportID))
        return Set(
            entries.values.filter { $0.isUsable && !used.contains($0.record.transportID) }.compactMap(\.phone?.udid)
        )
    }

    /// The phones with the ways to them, sorted by UDID, USB before network. `unanswered` has those without a name yet.
    var snapshot: DeviceDirectory.Snapshot {
        var best: [Device.Transport: [UDID: Device]] = [:]
        let used = Set(usable.map(\.record.transportID))
        for entry in entries.values.sorted(by: { $0.record.transportID < $1.record.transportID }) {
            guard !entry.isUsable || used.contains(entry.record.transportID), let device = entry.device,
                best[device.transport]?[device.udid]?.isReady != true
            else { continue }
            best[device.transport, default: [:]][device.udid] = device
        }
        let devices = best.values.flatMap(\.values).sorted { one, other in
            one.udid == other.udid ? one.transport == .usb && other.transport != .usb : one.udid < other.udid
        }
        let unanswered = entries.values.filter { $0.isUsable && $0.phone?.name == nil }.compactMap(\.phone?.udid)
        return DeviceDirectory.Snapshot(devices: devices, unanswered: Set(unanswered))
    }
}

extension ADBDeviceTable.Entry {
    /// The newest state in any list.
    fileprivate var state: ADBState { requestedState ?? record.state }

    fileprivate var isOffline: Bool { record.state == .ready && state != .ready }

    fileprivate var isUsable: Bool { attachment != nil && progress == .read && !isOffline }

    /// True if two attachments with one serial may lead to one phone, by cable and by Wi-Fi.
    ///
    /// The ID of the boot decides. Where the shell may not read it, a phone has one model and at most one cable.
    fileprivate func mayBeSamePhone(as other: Self) -> Bool {
        guard let one = phone, let two = other.phone, one.bootID == two.bootID else { return false }
        if one.bootID != nil { return true }
        return one.model == two.model && one.release == two.release && !(record.isOnCable && other.record.isOnCable)
    }

    fileprivate var isListedReady: Bool {
        isUsable || attachment != nil && progress == .unread && wasReady && !isOffline
    }

    /// The phone for lists; nil while a new phone is being asked.
    ///
    /// A phone that cannot be asked is listed by the name of its attachment. It is never reached by that name.
    fileprivate var device: Device? {
        if record.state == .ready, phone == nil, progress == .unread { return nil }
        guard let udid = phone?.udid ?? UDID(androidSerial: record.serial.text) else { return nil }
        var device = Device(udid: udid, transport: record.isOnCable ? .usb : .network, attachedAt: attachedAt)
        device.state = isListedReady ? .ready : state == .ready ? .offline : state.deviceState
        device.name = phone?.name
        device.productType = phone?.model ?? record.model.map { SanitizedText($0.text.replacing("_", with: " ")) }
        device.productVersion = phone?.release
        return device
    }
}

extension ADBState {
    fileprivate var deviceState: Device.State {
        switch self {
        case .ready: .ready
        case .offline: .offline
        case .unauthorized: .unauthorized
        case .authorizing, .connecting: .connecting
        case .noPermissions: .noPermissions
        case .other: .unavailable
        }
    }
}

/// An Android phone that accepts requests, by its current attachment. Another value means another stay of the phone.
package struct ADBReachablePhone: Hashable, Sendable {
    package let udid: UDID
    /// The version of Android, such as "15".
    package let release: SanitizedText?
    let attachment: ADBServerInstance.Attachment
}
