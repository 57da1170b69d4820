"""URLs of the kernel pages."""

from django.urls import path

from tracker.pages.kernels import views

urlpatterns = [path("kernel/<path:handle>/", views.kernel, name="kernel")]
