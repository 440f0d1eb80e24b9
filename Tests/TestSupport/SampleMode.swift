/// Whose habits the sample app has: AppReveal's platforms and versions.
package enum SampleMode: String, Sendable, CaseIterable {
    /// Before 0.10: whoever comes is served.
    case ios09 = "ios-0.9"
    case ios
    case android
    case flutter
    case windows
}
