/// The body of `PATCH /v1/advertisements/{id}`: the TXT record that takes the place of the one published.
package struct AdvertisementUpdate: Hashable, Sendable, Codable {
    package let txt: TXTRecord

    package init(txt: TXTRecord) { self.txt = txt }
}
