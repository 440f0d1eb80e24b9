import Model

/// The newest entries of several holders, with their pictures.
///
/// When it is full, the holder with the most entries loses its oldest one, and likewise for pictures. So a busy holder
/// cannot push out what others did. Adding an entry takes time in proportion to the number of holders.
struct ActivityHistory {
    /// The client of a call, or the endpoint of a change.
    enum Holder: Hashable, Sendable {
        case grant(String)
        case host(HostName)
        case user(SanitizedText)
        case endpoint(EndpointID)
    }

    /// An entry at a fixed place, because to copy one costs a call more than to change it.
    private final class Element {
        var record: ActivityRecord
        let share: Share

        init(_ record: ActivityRecord, of share: Share) { (self.record, self.share) = (record, share) }
    }

    /// The numbers of a holder's entries, in rising order.
    private final class Share {
        var entries: ArraySlice<UInt64> = []
        var pictures: ArraySlice<UInt64> = []
        var pictureBytes = 0
    }

    let capacity: Int
    /// The maximum memory for all pictures in bytes.
    let pictureLimit: Int
    private var kept: [UInt64: Element] = [:]
    private var shares: [Holder: Share] = [:]
    private var pictureBytes = 0

    init(capacity: Int, pictureLimit: Int = 0) {
        self.capacity = capacity
        self.pictureLimit = pictureLimit
    }

    /// The kept entries, in no order.
    var elements: [ActivityRecord] { kept.values.map(\.record) }

    /// The entry with a number; nil if it is not kept.
    subscript(id: UInt64) -> ActivityRecord? { kept[id]?.record }

    /// Adds an entry, whose number is higher than that of all others.
    mutating func append(_ record: ActivityRecord) {
        let share = shares[record.holder] ?? Share()
        if share.entries.isEmpty { shares[record.holder] = share }
        share.entries.append(record.entry.id)
        kept[record.entry.id] = Element(record, of: share)
        // The new entry counts, so that of equal holders the one that adds loses its own.
        if kept.count > capacity { removeOne() }
    }

    /// Changes a kept entry, and drops pictures until the rest fits.
    ///
    /// - Returns: False if the entry is not kept.
    mutating func update(_ id: UInt64, _ change: (inout ActivityRecord) -> Void) -> Bool {
        guard let element = kept[id] else { return false }
        let before = element.record.picture?.size
        change(&element.record)
        count(element.record.picture?.size, insteadOf: before, of: id, element.share)
        while pictureBytes > pictureLimit, removeOnePicture() {}
        return true
    }

    private mutating func count(_ size: Int?, insteadOf before: Int?, of id: UInt64, _ share: Share) {
        if size == nil, before == nil { return }
        let growth = (size ?? 0) - (before ?? 0)
        pictureBytes += growth
        share.pictureBytes += growth
        // A call may end after many newer ones.
        let place = share.pictures.lastIndex { $0 < id }.map { $0 + 1 } ?? share.pictures.startIndex
        if before == nil { share.pictures.insert(id, at: place) }
        if size == nil { share.pictures.remove(at: place) }
    }

    /// Removes the oldest entry of the holder with the most entries.
    private mutating func removeOne() {
        guard let share = largest({ $0.entries.count }, oldest: { $0.entries.first }),
            let id = share.entries.popFirst(), let element = kept.removeValue(forKey: id)
        else { return }
        count(nil, insteadOf: element.record.picture?.size, of: id, share)
        if share.entries.isEmpty { shares[element.record.holder] = nil }
    }

    /// Removes the oldest picture of the holder with the most bytes; false without a picture.
    private mutating func removeOnePicture() -> Bool {
        guard let share = largest({ $0.pictureBytes }, oldest: { $0.pictures.first }),
            let id = share.pictures.first, let element = kept[id]
        else { return false }
        count(nil, insteadOf: element.record.picture?.size, of: id, share)
        element.record.picture = nil
        return true
    }

    /// Returns the largest share. Of several, it is the one with the oldest element.
    private func largest(_ size: (Share) -> Int, oldest: (Share) -> UInt64?) -> Share? {
        shares.values.max { one, other in
            let (ones, others) = (size(one), size(other))
            return ones == others ? oldest(one) ?? .max > oldest(other) ?? .max : ones < others
        }
    }
}
