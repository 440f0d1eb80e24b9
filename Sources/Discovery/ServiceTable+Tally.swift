extension ServiceTable {
    struct Counts: Hashable, Sendable {
        var found = 0
        var resolved = 0
        var failed = 0
        var refused = 0
        /// Services that a limit kept out since the connection began.
        var dropped = 0
    }

    /// How many services are in which state, kept up to date instead of counted anew.
    struct Tally: Sendable {
        private(set) var counts = Counts()
        /// Found, and neither listed, refused nor tried in vain yet.
        private(set) var unresolved = 0
        /// For their lookup.
        private(set) var waiting = 0
        var dropped: Int {
            get { counts.dropped }
            set { counts.dropped = newValue }
        }

        mutating func add(_ instance: Instance) { count(instance, 1) }
        mutating func remove(_ instance: Instance) { count(instance, -1) }

        private mutating func count(_ instance: Instance, _ step: Int) {
            counts.found += step
            if instance.resolution == .queued { waiting += step }
            if instance.listed != nil { counts.resolved += step }
            if instance.refusal != nil { counts.refused += step }
            guard instance.listed == nil, instance.refusal == nil else { return }
            if instance.attempts > 0 {
                counts.failed += step
            } else if !instance.isOurOwn {
                unresolved += step
            }
        }
    }
}
