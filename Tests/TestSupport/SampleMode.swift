/// The AppReveal platform and version that the sample app imitates.
package enum SampleMode: String, Sendable, CaseIterable {
    /// Before 0.10, without authentication.
    case ios09 = "ios-0.9"
    case ios
    case android
    case flutter
    case windows
    case tauri
}
