import java.security.MessageDigest
import java.security.cert.CertificateException
import java.security.cert.X509Certificate
import javax.net.ssl.SSLContext
import javax.net.ssl.X509TrustManager
import okhttp3.MediaType.Companion.toMediaType
import okhttp3.OkHttpClient
import okhttp3.Request
import okhttp3.RequestBody.Companion.toRequestBody
import org.json.JSONObject

/** Accepts one key: `pin` is the SHA-256 of its SubjectPublicKeyInfo, which is what `encoded` returns. */
class PinnedTrustManager(private val pin: ByteArray) : X509TrustManager {
    override fun checkServerTrusted(chain: Array<X509Certificate>, authType: String) {
        val found = MessageDigest.getInstance("SHA-256").digest(chain[0].publicKey.encoded)
        if (!MessageDigest.isEqual(found, pin)) throw CertificateException("the broker has another key")
    }
    override fun checkClientTrusted(chain: Array<X509Certificate>, authType: String) = throw CertificateException()
    override fun getAcceptedIssuers(): Array<X509Certificate> = emptyArray()
}

class PatchbayRegistration(private val broker: String, pin: ByteArray) {
    private val trust = PinnedTrustManager(pin)
    private val tls = SSLContext.getInstance("TLS").apply { init(null, arrayOf(trust), null) }
    private val http = OkHttpClient.Builder().sslSocketFactory(tls.socketFactory, trust)
        .hostnameVerifier { _, _ -> true }.build() // The pin identifies the broker, and its name does not.

    /** Sends one request of the protocol. Null means that the broker refused it. */
    fun send(method: String, path: String, body: JSONObject?, token: String? = null): JSONObject? {
        val type = if (body == null) null else "application/json".toMediaType()
        val content = (body?.toString() ?: "").toRequestBody(type)
        val request = Request.Builder().url("$broker$path").method(method, content)
            .apply { if (token != null) header("Authorization", "Bearer $token") }.build()
        return http.newCall(request).execute().use {
            if (it.isSuccessful) JSONObject(it.body!!.string().ifEmpty { "{}" }) else null
        }
    }
}
