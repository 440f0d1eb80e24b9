import Model

/// The newest entries of several holders, with their pictures.
///
/// When it is full, the holder with the most entries loses its oldest one, and likewise for pictures. So a busy holder
/// cannot push out what others did. Adding an entry takes time in proportion to the number of holders.
struct ActivityHistory: Sendable {
    /// The client of a call, or the endpoint of a change.
    enum Holder: Hashable, Sendable {
        case grant(String)
        case host(HostName)
        case user(SanitizedText)
        case endpoint(EndpointID)
    }

    /// The numbers of a holder's entries, in rising order.
    private struct Share: Sendable {
        var entries: ArraySlice<UInt64> = []
        var pictures: ArraySlice<UInt64> = []
        var pictureBytes = 0
    }

    let capacity: Int
    /// The maximum memory for all pictures in bytes.
    let pictureLimit: Int
    private var records: [UInt64: ActivityRecord] = [:]
    private var shares: [Holder: Share] = [:]
    private var pictureBytes = 0

    init(capacity: Int, pictureLimit: Int = 0) {
        self.capacity = capacity
        self.pictureLimit = pictureLimit
    }

    /// The kept entries, in no order.
    var elements: [ActivityRecord] { Array(records.values) }

    /// The entry with a number; nil if it is not kept.
    subscript(id: UInt64) -> ActivityRecord? { records[id] }

    /// Adds an entry, whose number is higher than that of all others.
    mutating func append(_ record: ActivityRecord) {
        records[record.entry.id] = record
        shares[record.holder, default: Share()].entries.append(record.entry.id)
        // The new entry counts, so that of equal holders the one that adds loses its own.
        if records.count > capacity { removeOne() }
    }

    /// Changes a kept entry, and drops pictures until the rest fits.
    ///
    /// - Returns: False if the entry is not kept.
    mutating func update(_ id: UInt64, _ change: (inout ActivityRecord) -> Void) -> Bool {
        guard var record = records[id] else { return false }
        let before = record.picture
        change(&record)
        records[id] = record
        count(record.picture, insteadOf: before, of: id, record.holder)
        while pictureBytes > pictureLimit, removeOnePicture() {}
        return true
    }

    private mutating func count(
        _ picture: ActivityPicture?,
        insteadOf before: ActivityPicture?,
        of id: UInt64,
        _ holder: Holder
    ) {
        let growth = (picture?.size ?? 0) - (before?.size ?? 0)
        pictureBytes += growth
        guard var share = shares.removeValue(forKey: holder) else { return }
        share.pictureBytes += growth
        // A call may end after many newer ones.
        let place = share.pictures.lastIndex { $0 < id }.map { $0 + 1 } ?? share.pictures.startIndex
        switch (before == nil, picture == nil) {
        case (true, false): share.pictures.insert(id, at: place)
        case (false, true): share.pictures.remove(at: place)
        default: break
        }
        shares[holder] = share
    }

    /// Removes the oldest entry of the holder with the most entries.
    private mutating func removeOne() {
        guard let holder = largest(\.entries.count, oldest: \.entries.first), let id = shares[holder]?.entries.first
        else { return }
        count(nil, insteadOf: records[id]?.picture, of: id, holder)
        records[id] = nil
        shares[holder]?.entries.removeFirst()
        if shares[holder]?.entries.isEmpty == true { shares[holder] = nil }
    }

    /// Removes the oldest picture of the holder with the most bytes; false without a picture.
    private mutating func removeOnePicture() -> Bool {
        guard let holder = largest(\.pictureBytes, oldest: \.pictures.first), let id = shares[holder]?.pictures.first
        else { return false }
        count(nil, insteadOf: records[id]?.picture, of: id, holder)
        records[id]?.picture = nil
        return true
    }

    /// Returns the holder with the largest share. Of several, it is the one with the oldest element.
    private func largest(_ size: KeyPath<Share, Int>, oldest: KeyPath<Share, UInt64?>) -> Holder? {
        shares.max { one, other in
            let (ones, others) = (one.value[keyPath: size], other.value[keyPath: size])
            guard ones == others else { return ones < others }
            return one.value[keyPath: oldest] ?? .max > other.value[keyPath: oldest] ?? .max
        }?
        .key
    }
}
