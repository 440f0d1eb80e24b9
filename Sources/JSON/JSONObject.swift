/// The members of a JSON object in their order, each name once.
package struct JSONObject: Hashable, Sendable {
    package struct Member: Hashable, Sendable {
        package let name: String
        package var value: JSON

        package init(name: String, value: JSON) {
            self.name = name
            self.value = value
        }

        /// Section 8.3: names are compared unit by unit, so that two spellings of é are two names.
        func isCalled(_ name: String) -> Bool { self.name.utf8.elementsEqual(name.utf8) }
    }

    package private(set) var members: [Member]

    /// - Parameter members: Where a name comes twice, the last one counts, in the place of the first.
    package init(_ members: [Member] = []) {
        self.members = []
        self.members.reserveCapacity(members.count)
        for member in members { self[member.name] = member.value }
    }

    /// For the parser, which has looked for names that come twice.
    init(unique members: [Member]) { self.members = members }

    /// A new name goes to the end; nil takes the member away.
    package subscript(name: String) -> JSON? {
        get { members.first { $0.isCalled(name) }?.value }
        set {
            let place = members.firstIndex { $0.isCalled(name) }
            switch (place, newValue) {
            case (let place?, let value?): members[place].value = value
            case (let place?, nil): members.remove(at: place)
            case (nil, let value?): members.append(Member(name: name, value: value))
            case (nil, nil): break
            }
        }
    }
}

extension JSONObject: ExpressibleByDictionaryLiteral {
    package init(dictionaryLiteral elements: (String, JSON)...) {
        self.init(elements.map { Member(name: $0.0, value: $0.1) })
    }
}
